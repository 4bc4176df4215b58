"""Tests the published Operator Lifecycle Manager procedure, and installations that must be rejected."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from deploy import generate
from deploy.packages import bundle, publishing
from deploy.packages.bundle import Publication
from deploy.packages.operatordeployment import OperatorSettings, cluster
from tests.kubernetes.lwsoperator import certmanager
from tests.kubernetes.lwsoperator.certmanager import definition
from tests.kubernetes.lwsoperator.conftest import IMAGE, OBJECT, OperatorCluster, OperatorRun
from tests.kubernetes.lwsoperator.managers import served
from tests.kubernetes.lwsoperator.olm import FOLDER, Manager, load
from tests.kubernetes.lwsoperator.waiting import until

import leaderworkerset
from leaderworkerset.install.installsettings import PROMETHEUS_RULES, SERVICE_MONITORS
from leaderworkerset.install.operatornames import OPERATOR
from leaderworkerset.operator.operand import ISSUED

pytestmark = pytest.mark.slow

NAMESPACE: Final = "openshift-operators"
GLOBAL: Final[dict[str, Any]] = {
    "apiVersion": "operators.coreos.com/v1",
    "kind": "OperatorGroup",
    "metadata": {"name": "global-operators", "namespace": NAMESPACE},
    "spec": {},
}


def subscription(name: str = "lws-operator", channel: str = "stable") -> dict[str, Any]:
    """Return the subscription in the procedure."""
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
def manager(site: OperatorCluster) -> Iterator[Manager]:
    """Return the Operator Lifecycle Manager of a cluster without operators."""
    site.stop()
    kubectl = site.administrator.kubectl
    if site.administrator.get("crd/leaderworkersetoperators.operator.openshift.io"):
        kubectl("delete", OBJECT, "--ignore-not-found")
    kubectl("create", "namespace", NAMESPACE)
    found = Manager(site.administrator)
    found.serve()
    yield found
    kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def test_recipe_installs_a_working_operator(manager: Manager, site: OperatorCluster) -> None:
    """The operator serves all namespaces with the permissions of the installed version.

    Rules R-OP-10, R-OP-58, R-OP-83 (D2), AT-000-2b.
    """
    administrator = site.administrator
    manager.install(subscription(), GLOBAL)
    listed = administrator.kubectl("get", "csv", "-n", NAMESPACE)
    assert [line.split() for line in listed.splitlines() if "lws" in line] == [
        [f"lws-operator.v{leaderworkerset.__version__}", "Succeeded"]
    ]
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
        with served(administrator, site.directory, NAMESPACE):
            site.await_condition("Available", "True", "AsExpected")
        assert administrator.get("deployment/lws-controller-manager", "-n", NAMESPACE) is not None
        webhooks = administrator.there("mutatingwebhookconfiguration/lws-mutating-webhook-configuration")["webhooks"]
        assert {one["clientConfig"]["service"]["namespace"] for one in webhooks} == {NAMESPACE}
        administrator.kubectl("delete", OBJECT)
        until(lambda: administrator.get("mutatingwebhookconfigurations") is None, "no webhooks")
    finally:
        run.stop()


def test_files_of_the_page_install_the_operator(manager: Manager) -> None:
    """The files in deploy/olm work with metrics and without the alert kind (R-OP-64, R-OP-76, AT-001-2)."""
    kubectl = manager.administrator.kubectl
    kubectl("delete", f"crd/{PROMETHEUS_RULES.group_resource}", "--ignore-not-found")
    kubectl("apply", "--server-side", "-f", "-", objects=[definition(SERVICE_MONITORS)])
    kubectl("wait", "--for=condition=established", f"crd/{SERVICE_MONITORS.group_resource}")
    namespace, group, asked = load(FOLDER / "subscriptions/leader-worker-set.yaml")
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", objects=[namespace])
    manager.install(asked, group)
    listed = kubectl("get", "csv", "-n", OPERATOR, "--no-headers")
    assert listed.split() == [f"leader-worker-set.v{leaderworkerset.__version__}", "Succeeded"]
    service = manager.administrator.there("service/openshift-lws-operator-metrics", "-n", OPERATOR)
    monitor = manager.administrator.there("servicemonitor/openshift-lws-operator", "-n", OPERATOR)
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    pods = manager.administrator.there("pods", "-n", OPERATOR)["items"]
    assert any(service["spec"]["selector"].items() <= pod["metadata"]["labels"].items() for pod in pods)


def publish(folder: Path, version: str, tag: str) -> Path:
    """Write the bundle and the catalog of a release with this image tag. Return the directory of the packages."""
    image = f"{IMAGE.rpartition(':')[0]}:{tag}"
    chosen = OperatorSettings(image=image, operand_image=image)
    package = bundle.LEADER_WORKER_SET
    ours = Publication(version=version)
    publishing.write(folder, generate.olm_package(package, f"example.com/bundle:{tag}", chosen, ours, released=False))
    return folder / "olm"


@pytest.mark.parametrize("old", ["0.1.0", bundle.FORMER])
def test_newer_catalog_upgrades_the_operator(empty: Manager, tmp_path: Path, old: str) -> None:
    """The same subscription also upgrades from earlier versions of all bundles (R-OP-39, R-OP-44, R-OP-71)."""
    own = GLOBAL | {"spec": {"targetNamespaces": [NAMESPACE]}}
    asked = subscription("leader-worker-set", "stable-v1.0")
    before = replace(empty, folder=publish(tmp_path / "old", old, "old"))
    before.install(asked, own)
    assert state_of(empty)[1] == ["Succeeded/InstallSucceeded"]
    assert before.upgrade(asked, own) is None
    after = replace(empty, folder=publish(tmp_path / "new", "0.4.0", "new"))
    assert after.upgrade(asked, own) == "leader-worker-set.v0.4.0"
    (version,) = empty.administrator.there("csv", "-n", NAMESPACE)["items"]
    assert (version["metadata"]["name"], version["status"]["phase"]) == ("leader-worker-set.v0.4.0", "Succeeded")
    deployment = empty.administrator.there(f"deployment/{OPERATOR}", "-n", NAMESPACE)
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"].endswith(":new")
    assert after.upgrade(asked, own) is None


def start(site: OperatorCluster) -> OperatorRun:
    """Start the operator with the permissions that the Operator Lifecycle Manager granted to its account."""
    administrator = site.administrator
    token = administrator.kubectl("create", "token", OPERATOR, "-n", NAMESPACE).strip()
    config = json.loads(administrator.plane.kubeconfig.read_text())
    config["users"] = [{"name": "admin", "user": {"token": token}}]
    kubeconfig = site.directory / "olm.kubeconfig"
    kubeconfig.write_text(json.dumps(config))
    return OperatorRun(kubeconfig, site.log, IMAGE, namespace=NAMESPACE)


@pytest.fixture
def empty(manager: Manager) -> Iterator[Manager]:
    """Return an Operator Lifecycle Manager with only the vendor's package, and a namespace without versions."""
    clean(manager)
    yield replace(manager, catalog=("leader-worker-set",))
    clean(manager)


def clean(manager: Manager) -> None:
    manager.administrator.kubectl("delete", "csv,sub,deployments", "--all", "-n", NAMESPACE)


def state_of(manager: Manager) -> tuple[list[tuple[str, str]], list[str], list[str]]:
    """Return the true conditions of the subscription, the phases and reasons of versions, and the Deployments."""
    subscriptions, versions, deployments = (
        (manager.administrator.get(kind, "-n", NAMESPACE) or {"items": []})["items"]
        for kind in ("sub", "csv", "deployments")
    )
    (found,) = subscriptions
    conditions = (found.get("status") or {}).get("conditions") or []
    return (
        [(one["type"], one["message"]) for one in conditions if one["status"] == "True"],
        [f"{one['status']['phase']}/{one['status']['reason']}" for one in versions],
        [one["metadata"]["name"] for one in deployments],
    )


@pytest.mark.parametrize(
    ("package", "channel", "message"),
    [
        ("lws-operator", "stable", "no operators found from catalog: package lws-operator"),
        ("leader-worker-set", "stable", "no operators found in channel stable of package leader-worker-set"),
    ],
    ids=["as printed", "another channel"],
)
def test_recipe_fails_to_resolve_in_the_vendors_catalog(
    empty: Manager, package: str, channel: str, message: str
) -> None:
    """No version is installed, and the subscription reports the reason (R-OP-58, AT-000-2a)."""
    empty.install(subscription(package, channel), GLOBAL)
    assert state_of(empty) == ([("ResolutionFailed", message)], [], [])


def test_vendors_package_rejects_an_all_namespaces_group(empty: Manager) -> None:
    """If the package is correct but the namespace is not, the version fails (R-OP-37, R-OP-58, AT-000-2a)."""
    empty.install(subscription("leader-worker-set", "stable-v1.0"), GLOBAL)
    assert state_of(empty) == ([], ["Failed/UnsupportedOperatorGroup"], [])
    own = GLOBAL | {"spec": {"targetNamespaces": [NAMESPACE]}}
    empty.install(subscription("leader-worker-set", "stable-v1.0"), own)
    assert state_of(empty) == ([], ["Succeeded/InstallSucceeded"], [OPERATOR])
