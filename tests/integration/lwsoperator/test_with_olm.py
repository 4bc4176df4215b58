"""The published recipe for the Operator Lifecycle Manager, applied as printed (AT-000-2); and what it must refuse."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
from tests.integration.lwsoperator import certmanager
from tests.integration.lwsoperator.conftest import IMAGE, OBJECT, OperatorRun, Site
from tests.integration.lwsoperator.olm import Manager, ResolutionError
from tests.integration.lwsoperator.waiting import until

from leaderworkerset.operator.operand import ISSUED
from leaderworkerset.operator.operatordeployment import cluster
from leaderworkerset.operator.operatornames import OPERATOR

pytestmark = pytest.mark.slow

NAMESPACE: Final = "openshift-operators"
GLOBAL: Final[dict[str, Any]] = {
    "apiVersion": "operators.coreos.com/v1",
    "kind": "OperatorGroup",
    "metadata": {"name": "global-operators", "namespace": NAMESPACE},
    "spec": {},
}


def subscription(name: str = "lws-operator", channel: str = "stable") -> dict[str, Any]:
    """Return the recipe's subscription."""
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "Subscription",
        "metadata": {"name": "lws-operator", "namespace": NAMESPACE},
        "spec": {
            "channel": channel,
            "name": name,
            "source": "community-operators",
            "sourceNamespace": "openshift-marketplace",
        },
    }


@pytest.fixture(scope="module")
def manager(site: Site) -> Iterator[Manager]:
    """Return the manager of operators of a cluster that has none."""
    site.stop()
    kubectl = site.administrator.kubectl
    if site.administrator.get("crd/leaderworkersetoperators.operator.openshift.io"):
        kubectl("delete", OBJECT, "--ignore-not-found")
    kubectl("create", "namespace", NAMESPACE)
    found = Manager(site.administrator)
    found.serve()
    yield found
    kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def test_the_recipe_installs_an_operator_that_works(manager: Manager, site: Site) -> None:
    """AT-000-2b, R-OP-10: in a namespace that serves all, with the rights that the version asks for and no others."""
    administrator = site.administrator
    version = manager.install(subscription(), GLOBAL)
    listed = administrator.kubectl("get", "csv", "-n", NAMESPACE)
    assert [line for line in listed.splitlines() if "lws" in line]
    (deployment,) = [one["name"] for one in version["spec"]["install"]["spec"]["deployments"]]
    words = ("wait", f"deployment/{deployment}", "-n", NAMESPACE, "--for=condition=available", "--timeout=60s")
    administrator.kubectl(*words)
    selector = ("-l", "app.kubernetes.io/name=lws-operator", "--no-headers")
    (pod,) = administrator.kubectl("get", "pods", "-n", NAMESPACE, *selector).splitlines()
    assert pod.split()[1:3] == ["1/1", "Running"]

    run = start(site)
    try:
        administrator.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", objects=[cluster()])
        certmanager.install(administrator)
        for name in ISSUED:
            certmanager.issue(administrator, name, NAMESPACE)
        site.await_condition("Degraded", "False", "AsExpected")
        site.await_condition("Available", "True", "AsExpected")
        assert administrator.get("deployment/lws-controller-manager", "-n", NAMESPACE) is not None
        webhooks = administrator.there("mutatingwebhookconfiguration/lws-mutating-webhook-configuration")["webhooks"]
        assert {one["clientConfig"]["service"]["namespace"] for one in webhooks} == {NAMESPACE}
        administrator.kubectl("delete", OBJECT)
        until(lambda: administrator.get("mutatingwebhookconfigurations") is None, "no webhooks")
    finally:
        run.stop()


def start(site: Site) -> OperatorRun:
    """Start the operator with the rights that the manager of operators has given its account."""
    administrator = site.administrator
    token = administrator.kubectl("create", "token", OPERATOR, "-n", NAMESPACE).strip()
    config = json.loads(administrator.plane.kubeconfig.read_text())
    config["users"] = [{"name": "admin", "user": {"token": token}}]
    kubeconfig = site.directory / "olm.kubeconfig"
    kubeconfig.write_text(json.dumps(config))
    return OperatorRun(kubeconfig, site.log, IMAGE, namespace=NAMESPACE)


@pytest.mark.parametrize(
    ("package", "channel", "words"),
    [
        ("lws-operator", "beta", "channel beta"),
        ("lws", "stable", "package lws"),
        ("leader-worker-set", "stable-v1.0", "UnsupportedOperatorGroup"),
    ],
)
def test_what_does_not_fit_is_refused(manager: Manager, package: str, channel: str, words: str) -> None:
    """AT-000-2a: the package of the operator's own namespace may not be installed into one that serves all."""
    with pytest.raises(ResolutionError, match=words):
        manager.install(subscription(package, channel), GLOBAL)
