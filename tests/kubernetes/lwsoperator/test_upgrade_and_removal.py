"""Tests the upgrade of an operator with running groups, and its removal in correct and incorrect order."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testkit.repository import ROOT
from tests.integration.clusters import objects as sets
from tests.kubernetes.lwsoperator.conftest import IMAGE, IN, MANAGER, OBJECT, OperatorCluster, objects
from tests.kubernetes.lwsoperator.managers import Managers, managers
from tests.kubernetes.lwsoperator.test_scenarios import DEFINITION, generation, owned
from tests.kubernetes.lwsoperator.waiting import until

from leaderworkerset.api import labels, metadata
from leaderworkerset.core.restarts.retention import FINALIZER
from leaderworkerset.install.operatornames import OPERATOR, OPERATORS, OWNED_BY, OWNED_LABEL

pytestmark = pytest.mark.slow

NEWER = "example.com/lws:2"
GROUPS = "groups"
CERTIFICATE_ROLE = "lws-certificates-role"
KEPT = ("CustomResourceDefinition", "Namespace")
SERVED = ("crd", "clusterrole", "clusterrolebinding", "validatingwebhookconfiguration", "mutatingwebhookconfiguration")


@pytest.fixture
def installed(site: OperatorCluster) -> Iterator[OperatorCluster]:
    """Return a cluster with a running operand, even if an earlier test has removed it."""
    site.stop()
    site.install()
    site.start()
    site.create()
    site.await_available()
    yield site
    site.stop()


def snapshot(site: OperatorCluster) -> dict[str, Any]:
    """Return the identity of all group objects, and the restart counts of containers (R-OP-44)."""
    listed = site.administrator.there("lws,statefulsets,services,controllerrevisions,pods", "-n", GROUPS)["items"]
    return {f"{obj['kind']}/{obj['metadata']['name']}": _identity(obj) for obj in listed}


def _identity(obj: dict[str, Any]) -> tuple[str, str, int]:
    restarts = sum(one["restartCount"] for one in obj.get("status", {}).get("containerStatuses", []))
    return obj["metadata"]["uid"], obj["metadata"]["resourceVersion"], restarts


def create_set(site: OperatorCluster, name: str) -> None:
    lws = sets.lws(name, replicas=2, size=3)
    site.administrator.kubectl("create", "-n", GROUPS, "-f", "-", objects=[lws])


def await_set(site: OperatorCluster, name: str, running: Managers) -> None:
    """Wait until the status reports that all groups are ready."""

    def is_ready() -> bool:
        status = site.administrator.there(f"lws/{name}", "-n", GROUPS).get("status", {})
        return bool(status.get("readyReplicas") == 2)

    try:
        until(is_ready, f"LeaderWorkerSet {name}")
    except AssertionError as error:
        raise AssertionError(f"{error}\n{running.tail()}") from error


def make_older(site: OperatorCluster) -> None:
    """Change the operand to the state of an older release, with a different CRD and an obsolete object."""
    kubectl = site.administrator.kubectl
    remove = '[{"op": "remove", "path": "/spec/versions/0/additionalPrinterColumns"}]'
    kubectl("patch", DEFINITION, "--type=json", "-p", remove)
    labels = {**metadata.LABELS, OWNED_LABEL: OWNED_BY}
    own = {"name": CERTIFICATE_ROLE, "namespace": OPERATOR, "labels": labels}
    kubectl(
        "create", "-f", "-", objects=[{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": own}]
    )


def test_upgrade_and_downgrade_do_not_touch_running_groups(installed: OperatorCluster, tmp_path: Path) -> None:
    """The image, the CRD and objects change.

    Groups retain pods, generations and restart counts (R-OP-39, R-OP-44).
    """
    with managers(installed.administrator, tmp_path) as running:
        running.start("old")
        manage(installed, "Unmanaged")  # otherwise the operator would restore the objects that route to the replica
        running.route("old")
        installed.administrator.kubectl("create", "namespace", GROUPS)
        create_set(installed, "before")
        await_set(installed, "before", running)
        installed.stop()
        make_older(installed)
        before = snapshot(installed)
        # pods, StatefulSets, Service and set, and the revisions of these sets
        assert len(before) == 2 * 3 + 3 + 1 + 1 + 4

        installed.start(NEWER)
        manage(installed, "Managed")
        until(lambda: image(installed) == NEWER, "the newer image")
        installed.await_available()
        until(lambda: installed.administrator.get(f"role/{CERTIFICATE_ROLE}", *IN) is None, "no older Role")
        columns = installed.administrator.there(DEFINITION)["spec"]["versions"][0]["additionalPrinterColumns"]
        assert "Ready" in {one["name"] for one in columns}
        running.start("new")
        manage(installed, "Unmanaged")
        running.route("new")
        running.stop("old")
        create_set(installed, "after")
        await_set(installed, "after", running)

        assert snapshot(installed).items() >= before.items()

        installed.stop()
        installed.start()
        manage(installed, "Managed")
        until(lambda: image(installed) == IMAGE, "the older image")
        installed.await_available()
        assert snapshot(installed).items() >= before.items()
    installed.administrator.kubectl("delete", "namespace", GROUPS, "--wait=false")


def manage(site: OperatorCluster, state: str) -> None:
    """Set whether the operator manages the operand."""
    site.patch(managementState=state)
    until(lambda: site.cluster()["status"]["observedGeneration"] == generation(site), state)


def image(site: OperatorCluster) -> str:
    return str(site.manager()["spec"]["template"]["spec"]["containers"][0]["image"])


def remove_operator(site: OperatorCluster) -> None:
    """Remove the operator except its CRD and its namespace."""
    site.stop()
    found = [obj for obj in objects() if obj["kind"] not in KEPT]
    site.administrator.kubectl("delete", "-f", "-", objects=found)


def is_gone(site: OperatorCluster) -> bool:
    """Return whether all objects of the operand except the CRDs were deleted."""
    return site.administrator.get(*MANAGER) is None and owned(site) == {}


def test_reinstalled_operator_adopts_its_operand(installed: OperatorCluster) -> None:
    """No object is deleted, and the new operator writes only the status (R-OP-31, R-OP-67, AT-001-5)."""
    before = owned(installed)
    remove_operator(installed)
    assert owned(installed) == before
    installed.install()
    installed.start()
    installed.patch(operatorLogLevel="Trace")
    until(lambda: installed.cluster()["status"]["observedGeneration"] == generation(installed), "the new generation")
    assert owned(installed) == before
    installed.await_available()


def test_deleted_operator_kind_deletes_the_operand(installed: OperatorCluster) -> None:
    """The garbage collector deletes owned objects. The CRDs of workloads remain (D1, R-OP-67, AT-001-5)."""
    remove_operator(installed)
    installed.administrator.kubectl("delete", f"crd/{OPERATORS.group_resource}")
    until(lambda: is_gone(installed), "nothing owned")
    assert installed.administrator.get(DEFINITION) is not None


def test_pods_of_exhausted_groups_are_deleted_without_a_manager(installed: OperatorCluster) -> None:
    """The pods are deleted even if the object `cluster` does not exist.

    Pods of a LeaderWorkerSet remain until it is deleted (N-RB-16).
    """
    kubectl = installed.administrator.kubectl
    installed.stop()
    kubectl("delete", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "--all")  # nobody answers here
    kubectl("create", "-f", "-", objects=[sets.lws("stays", replicas=1), kept_pod("stays"), kept_pod("gone")])
    kubectl("delete", "pod", "gone-0", "stays-0", "--wait=false", "--grace-period=0", "--force")
    installed.start()
    kubectl("delete", OBJECT)
    until(lambda: installed.administrator.get("pod/gone-0") is None, "no pod of a set that is gone")
    assert installed.administrator.get("pod/stays-0") is not None
    kubectl("delete", "lws/stays")
    until(lambda: installed.administrator.get("pod/stays-0") is None, "no pod of either set")


def kept_pod(name: str) -> dict[str, Any]:
    """Return the leader of an exhausted group in the form that the manager stores."""
    pod = labeled_pod()
    marks = {labels.GROUP_RESTART_BUDGET_EXHAUSTED: "true"}
    metadata = {"name": f"{name}-0", "labels": {labels.NAME: name}, "annotations": marks, "finalizers": [FINALIZER]}
    return pod | {"metadata": metadata}


def test_namespace_deleted_first_blocks_pods_only_temporarily(installed: OperatorCluster) -> None:
    """Webhooks without a server reject group pods until the webhooks are deleted (R-OP-31, R-OP-67, AT-001-5)."""
    kubectl = installed.administrator.kubectl
    installed.stop()
    kubectl("delete", "namespace", OPERATOR)
    assert "webhook" in kubectl("create", "-f", "-", objects=[labeled_pod()], code=1)
    refused = installed.administrator.lws("uninstall", "--keep-crd", "-n", OPERATOR, code=1)
    assert OBJECT.partition("/")[2] in refused
    kubectl("delete", OBJECT)
    until(lambda: installed.administrator.get("mutatingwebhookconfigurations") is None, "no webhooks")
    until(lambda: installed.administrator.get("validatingwebhookconfigurations") is None, "no webhooks")
    kubectl("create", "-f", "-", objects=[labeled_pod()])
    kubectl("delete", "pod/labeled", "--force")


def labeled_pod() -> dict[str, Any]:
    labels = {"leaderworkerset.sigs.k8s.io/name": "x"}
    spec = {"containers": [{"name": "main", "image": "app:1"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "labeled", "labels": labels}, "spec": spec}


def test_commands_of_the_page_leave_only_workloads(installed: OperatorCluster) -> None:
    """The operand and its operator are removed, but LeaderWorkerSets remain (R-OP-30, R-OP-67, AT-001-5)."""
    kubectl = installed.administrator.kubectl
    installed.stop()
    kubectl("delete", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "--all")  # nobody answers here
    kubectl("create", "-f", "-", objects=[sets.lws("kept", replicas=1)])
    installed.start()
    lines = removal()
    assert lines[0].startswith("kubectl delete lwsop/cluster")
    kubectl(*lines[0].split()[1:3])
    until(lambda: is_gone(installed), "nothing owned")
    installed.stop()
    kubectl("delete", "-k", str(ROOT / "deploy/operator"))
    assert installed.administrator.get("lws/kept") is not None
    left = [name for name in names(installed) if not name.startswith("customresourcedefinition")]
    assert left == []
    kubectl("delete", "lws", "--all", "-A")
    kubectl("delete", *names(installed))
    assert names(installed) == []
    kubectl("create", "-f", "-", objects=[labeled_pod()])


def removal() -> list[str]:
    """Return the commands on the page that remove the operator."""
    page = (ROOT / "docs/how-to/operator.md").read_text()
    section = page[page.index("## Remove it") :]
    (block,) = re.findall(r"^```bash\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    return str(block).splitlines()


def names(site: OperatorCluster) -> list[str]:
    """Return all cluster-scoped objects whose names contain LeaderWorkerSet."""
    found = site.administrator.kubectl("get", ",".join(SERVED), "-o", "name").splitlines()
    return [name for name in found if re.search("lws|leaderworkerset|disaggregatedset", name, re.IGNORECASE)]
