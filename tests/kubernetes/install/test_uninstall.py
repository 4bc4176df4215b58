"""Tests the preconditions of `lws uninstall` on a real control plane, and which objects are deleted."""

from collections.abc import Sequence
from typing import Any

import pytest
from testkit.repository import ROOT
from tests.integration.clusters import objects
from tests.kubernetes.install.conftest import DEFINITION, Administrator

from kuberuntime.objects import meta
from leaderworkerset.api import labels

pytestmark = pytest.mark.slow

USER_ROLES = ROOT / "deploy/kustomize/components/user-roles/roles.yaml"
RESTARTS = ROOT / "docs/how-to/restarts.md"
IN = ("-n", "lws-system")


def left(administrator: Administrator) -> set[str]:
    """Return the kinds of installed objects that still exist."""
    return {kind for kind, _ in administrator.installed()}


def create_sets(administrator: Administrator, *names: str) -> None:
    """Create LeaderWorkerSets without webhooks. Each LeaderWorkerSet owns a Service."""
    administrator.kubectl("delete", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "--all")
    administrator.await_kind()
    administrator.kubectl("create", "-f", "-", objects=[objects.lws(name, replicas=1) for name in names])
    administrator.kubectl("create", "-f", "-", objects=[owned(administrator, name) for name in names])


def owned(administrator: Administrator, name: str) -> dict[str, Any]:
    lws = administrator.there("lws", name)
    owner = {"apiVersion": lws["apiVersion"], "kind": lws["kind"], "name": name, "uid": lws["metadata"]["uid"]}
    metadata = {
        "name": name,
        "labels": {"leaderworkerset.sigs.k8s.io/name": name},
        "ownerReferences": [owner | {"controller": True, "blockOwnerDeletion": True}],
    }
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"clusterIP": "None"}}


def test_uninstall_leaves_nothing(administrator: Administrator) -> None:
    """Webhooks are deleted before other objects (R-OP-31)."""
    administrator.install()
    administrator.kubectl("apply", "--server-side", "-f", str(USER_ROLES))
    output = administrator.lws("uninstall").splitlines()
    assert output[0].startswith("validatingwebhookconfiguration/")
    assert output[-2:] == [f"customresourcedefinition/{DEFINITION} deleted", "namespace/lws-system deleted"]
    assert left(administrator) == set()
    assert administrator.get("clusterroles,clusterrolebindings", "-l", "app.kubernetes.io/name=lws") is None
    assert administrator.lws("uninstall") == "no objects to remove\n"


def test_uninstall_rejects_to_delete_leaderworkersets(administrator: Administrator) -> None:
    """Existing LeaderWorkerSets block the removal unless an option is set (R-OP-30)."""
    administrator.lws("install")
    create_sets(administrator, "one", "two")
    refused = administrator.lws("uninstall", code=1)
    assert (
        "custom resources would be deleted with their CRDs: leaderworkerset default/one, leaderworkerset default/two; use --delete-workloads"
        in refused
    )
    assert "Deployment" in left(administrator)
    assert len(administrator.there("lws", "-A")["items"]) == 2


def test_uninstall_can_keep_leaderworkersets(administrator: Administrator) -> None:
    """CRDs are preserved, so that another installation can use them. The empty namespace is deleted."""
    administrator.lws("install")
    create_sets(administrator, "one")
    before = administrator.there("lws/one")
    output = administrator.lws("uninstall", "--keep-crd")
    assert "are not reconciled until you install a manager" in output
    assert left(administrator) == {"CustomResourceDefinition"}
    assert administrator.there("lws/one") == before
    assert administrator.there("service/one")
    administrator.lws("install")
    assert administrator.there("lws/one") == before


def test_uninstall_can_delete_leaderworkersets_first(administrator: Administrator) -> None:
    """The garbage collector would not delete the owned objects later, because their CRD no longer exists."""
    administrator.lws("install")
    create_sets(administrator, "one", "two")
    output = administrator.lws("uninstall", "--delete-leaderworkersets")
    assert output.splitlines()[:2] == ["leaderworkerset/default/one deleted", "leaderworkerset/default/two deleted"]
    assert left(administrator) == set()
    assert administrator.get("service", "-l", "leaderworkerset.sigs.k8s.io/name") is None


def test_set_with_a_foreign_finalizer_is_named(administrator: Administrator) -> None:
    administrator.lws("install")
    create_sets(administrator, "held")
    administrator.kubectl(
        "patch", "lws/held", "--type=merge", "-p", '{"metadata": {"finalizers": ["example.com/hold"]}}'
    )
    refused = administrator.lws("uninstall", "--delete-leaderworkersets", "--timeout=2", code=124)
    assert "leaderworkerset/default/held was not deleted within 2 s, blocked by finalizers example.com/hold" in refused
    assert "Deployment" in left(administrator)
    administrator.kubectl("patch", "lws/held", "--type=merge", "-p", '{"metadata": {"finalizers": null}}')


def keep_evidence(
    administrator: Administrator, of: str, namespace: str = "default", theirs: Sequence[str] = ()
) -> None:
    """Create the pods of an exhausted group in the same way as the manager. The worker also has another finalizer."""
    for name, rank in ((f"{of}-0", "0"), (f"{of}-0-1", "1")):
        marks = {labels.GROUP_RESTART_BUDGET_EXHAUSTED: "true"} if rank == "0" else {}
        metadata = {
            "name": name,
            "namespace": namespace,
            "labels": {labels.NAME: of, labels.WORKER_INDEX: rank},
            "annotations": marks,
            "finalizers": [labels.GROUP_RESTART_BUDGET_CLEANUP, *(theirs if rank == "1" else ())],
        }
        spec = {"containers": [{"name": "main", "image": "app:1"}]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        administrator.kubectl("create", "-f", "-", objects=[pod])
        administrator.kubectl("delete", "pod", name, "-n", namespace, "--wait=false")


def kept(administrator: Administrator) -> list[str]:
    return [meta.name(pod) for pod in (administrator.get("pods", "-A", "-l", labels.NAME) or {"items": []})["items"]]


def test_evidence_is_released_when_sets_are_kept(administrator: Administrator) -> None:
    """Without a manager, only the command on the page removes the finalizer (N-RB-5)."""
    administrator.lws("install")
    create_sets(administrator, "one")
    keep_evidence(administrator, "one", theirs=("example.com/theirs",))
    for words in ((), ("--dry-run",)):
        refused = administrator.lws("uninstall", "--keep-crd", *words, code=1)
        assert "could not be deleted: default/one-0, default/one-0-1;" in refused
        assert "lws recover one -n default" in refused
    assert "Deployment" in left(administrator)
    administrator.shell(command_of_the_page())
    assert kept(administrator) == ["one-0-1"]
    assert administrator.there("pod/one-0-1")["metadata"]["finalizers"] == ["example.com/theirs"]
    administrator.kubectl("patch", "pod/one-0-1", "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
    administrator.lws("uninstall", "--keep-crd")
    assert administrator.there("lws/one")


def command_of_the_page() -> str:
    section = RESTARTS.read_text().partition("## Before the manager is removed")[2]
    return section.partition("```bash\n")[2].partition("```")[0]


def test_evidence_is_deleted_with_the_sets(administrator: Administrator) -> None:
    """The finalizers of workers are removed after the manager is deleted.

    Then the namespace can be deleted (N-RB-5, N-RB-16).
    """
    administrator.lws("install")
    administrator.kubectl("create", "namespace", "tenant")
    create_sets(administrator, "one")
    keep_evidence(administrator, "one")
    keep_evidence(administrator, "gone", "tenant")  # this set was deleted while no manager was running
    released = [
        f"pod/{pod}: finalizer removed (the pod was kept for diagnosis)"
        for pod in ("default/one-0-1", "tenant/gone-0-1", "default/one-0", "tenant/gone-0")
    ]
    before = administrator.installed()
    trial = administrator.lws("uninstall", "--delete-workloads", "--dry-run").splitlines()
    assert administrator.installed() == before
    assert len(kept(administrator)) == 4
    assert administrator.there("lws/one")

    output = administrator.lws("uninstall", "--delete-workloads").splitlines()
    assert [line for line in output if line.startswith("pod/")] == released
    assert trial == [f"{line} (dry run)" for line in output]
    assert output.index("deployment/lws-controller-manager deleted") < output.index(released[0])
    assert kept(administrator) == []
    administrator.kubectl("delete", "namespace", "tenant")
    assert left(administrator) == set()


def test_evidence_of_a_different_installer_is_released(administrator: Administrator) -> None:
    """The removal of the finalizer needs neither a manager nor its CRDs (N-RB-5)."""
    administrator.lws("uninstall", "--delete-workloads")
    keep_evidence(administrator, "one")
    assert "pod/default/one-0: finalizer removed" in administrator.lws("uninstall")
    assert kept(administrator) == []


def test_foreign_objects_are_kept(administrator: Administrator) -> None:
    """Objects with reserved names but without labels are preserved, as are namespaces with other objects."""
    administrator.lws("install")
    administrator.kubectl(
        "label", "clusterrole/lws-proxy-role", "app.kubernetes.io/instance-", "app.kubernetes.io/name-"
    )
    administrator.kubectl("create", "configmap", "tenant", *IN)
    output = administrator.lws("uninstall")
    assert "clusterrole/lws-proxy-role not deleted, because it has no installation labels" in output
    assert "namespace/lws-system not deleted, because it contains configmap/tenant" in output
    assert left(administrator) == {"ClusterRole", "Namespace"}
    assert administrator.there("configmap/tenant", *IN)
    administrator.kubectl("delete", "clusterrole/lws-proxy-role")
