"""`lws uninstall` on a real control plane: what stands in its way, what goes, what stays."""

from pathlib import Path
from typing import Any

import pytest
from tests.integration.clusters import objects
from tests.integration.install.conftest import DEFINITION, Administrator

pytestmark = pytest.mark.slow

USER_ROLES = Path(__file__).parents[3] / "deploy/kustomize/components/user-roles/roles.yaml"
IN = ("-n", "lws-system")


def left(administrator: Administrator) -> set[str]:
    """Return the kinds of everything installed that is still there."""
    return {kind for kind, _ in administrator.installed()}


def create_sets(administrator: Administrator, *names: str) -> None:
    """Create LeaderWorkerSets where no webhook stands in between, and for each a service that it owns."""
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


def test_nothing_is_left(administrator: Administrator) -> None:
    """R-OP-31: webhooks go first."""
    administrator.lws("install", "--wait")
    administrator.kubectl("apply", "--server-side", "-f", str(USER_ROLES))
    output = administrator.lws("uninstall").splitlines()
    assert output[0].startswith("validatingwebhookconfiguration/")
    assert output[-2:] == [f"customresourcedefinition/{DEFINITION} deleted", "namespace/lws-system deleted"]
    assert left(administrator) == set()
    assert administrator.get("clusterroles,clusterrolebindings", "-l", "app.kubernetes.io/name=lws") is None
    assert administrator.lws("uninstall") == "there is nothing to remove\n"


def test_leaderworkersets_are_not_lost_unawares(administrator: Administrator) -> None:
    """R-OP-30."""
    administrator.lws("install")
    create_sets(administrator, "one", "two")
    refused = administrator.lws("uninstall", code=1)
    assert (
        "objects would be deleted with their definitions: leaderworkerset default/one, leaderworkerset default/two; delete"
        in refused
    )
    assert "Deployment" in left(administrator)
    assert len(administrator.there("lws", "-A")["items"]) == 2


def test_leaderworkersets_can_be_kept(administrator: Administrator) -> None:
    """With the definition and the namespace, so that another installation goes on with them."""
    administrator.lws("install")
    create_sets(administrator, "one")
    before = administrator.there("lws/one")
    output = administrator.lws("uninstall", "--keep-crd")
    assert "nothing recreates, scales or updates them until it is installed again" in output
    assert left(administrator) == {"CustomResourceDefinition", "Namespace"}
    assert administrator.there("lws/one") == before
    assert administrator.there("service/one")
    administrator.lws("install")
    assert administrator.there("lws/one") == before


def test_leaderworkersets_can_go_first(administrator: Administrator) -> None:
    """What they own is gone before their definition: without it the garbage collector would leave all of it."""
    administrator.lws("install")
    create_sets(administrator, "one", "two")
    output = administrator.lws("uninstall", "--delete-leaderworkersets")
    assert output.splitlines()[:2] == ["leaderworkerset/default/one deleted", "leaderworkerset/default/two deleted"]
    assert left(administrator) == set()
    assert administrator.get("service", "-l", "leaderworkerset.sigs.k8s.io/name") is None


def test_a_set_that_is_held_is_named(administrator: Administrator) -> None:
    administrator.lws("install")
    create_sets(administrator, "held")
    administrator.kubectl(
        "patch", "lws/held", "--type=merge", "-p", '{"metadata": {"finalizers": ["example.com/hold"]}}'
    )
    refused = administrator.lws("uninstall", "--delete-leaderworkersets", "--timeout=2", code=124)
    assert "leaderworkerset/default/held is still there after 2 s: held by finalizers example.com/hold" in refused
    assert "Deployment" in left(administrator)
    administrator.kubectl("patch", "lws/held", "--type=merge", "-p", '{"metadata": {"finalizers": null}}')


def test_what_others_made_stays(administrator: Administrator) -> None:
    """An object of our name without our labels, and a namespace in which somebody else lives."""
    administrator.lws("install")
    administrator.kubectl(
        "label", "clusterrole/lws-proxy-role", "app.kubernetes.io/instance-", "app.kubernetes.io/name-"
    )
    administrator.kubectl("create", "configmap", "tenant", *IN)
    output = administrator.lws("uninstall")
    assert "clusterrole/lws-proxy-role left as it is: it has no labels of an installation" in output
    assert "namespace/lws-system left as it is: configmap/tenant is in it" in output
    assert left(administrator) == {"ClusterRole", "Namespace"}
    assert administrator.there("configmap/tenant", *IN)
    administrator.kubectl("delete", "clusterrole/lws-proxy-role")
