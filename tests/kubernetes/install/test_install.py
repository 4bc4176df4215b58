"""Tests `lws install` on a real control plane with created objects, unchanged objects, and errors."""

import base64
import re
import shlex
from typing import Any

import pytest
from testkit.repository import ROOT
from tests.integration.clusters import objects
from tests.kubernetes.install.conftest import Administrator
from tests.kubernetes.install.served import served

from leaderworkerset.api import metadata
from leaderworkerset.install.installsettings import InstallSettings
from leaderworkerset.install.objects import build_all
from leaderworkerset.kinds.managedkinds import MANAGED

pytestmark = pytest.mark.slow

IN = ("-n", "lws-system")
SECRET = ("secret/lws-webhook-server-cert", *IN)
MUTATING = "mutatingwebhookconfiguration/lws-mutating-webhook-configuration"
DEPLOYMENT = ("deployment/lws-controller-manager", *IN)
CONFIGURATION = ("configmap/lws-manager-config", *IN)
OWN_CONFIGURATION = """\
apiVersion: config.lws.x-k8s.io/v1
kind: Configuration
clientConnection: {qps: 50, burst: 100}
"""


def words(output: str) -> set[str]:
    """Return the last word of each line: created, configured, or unchanged."""
    return {line.split()[-1] for line in output.splitlines()}


def versions(administrator: Administrator) -> dict[str, str]:
    """Return the resourceVersion of each installed object, except objects whose status changes at any time."""
    return {
        f"{kind}/{name}": obj["metadata"]["resourceVersion"]
        for (kind, name), obj in administrator.installed().items()
        if kind not in {"Deployment", "CustomResourceDefinition"}
    }


def test_installation_is_idempotent(fresh: Administrator) -> None:
    checked = fresh.lws("install", "--dry-run=server")
    assert "clusterrole/lws-manager-role created (dry run)" in checked
    assert "deployment/lws-controller-manager not checked, because its namespace does not exist (dry run)" in checked
    assert fresh.get("namespace/lws-system") is None

    output = fresh.install()
    assert [line for line in output.splitlines() if not line.endswith(" created")] == []

    before = versions(fresh)
    assert words(fresh.lws("install")) == {"unchanged"}
    assert versions(fresh) == before
    assert {line.rsplit(" ", 3)[1] for line in fresh.lws("install", "--dry-run=server").splitlines()} == {"unchanged"}


def test_wait_verifies_that_webhooks_are_reachable(fresh: Administrator) -> None:
    """Simulated pods are ready but do not respond, so the first write of a user would be rejected."""
    told = fresh.lws("install", "--wait", "--timeout=20s", code=124)
    assert "the API server cannot reach the webhooks" in told
    assert "failed calling webhook" in told
    with served(fresh, "live"):
        output = fresh.lws("install", "--wait").splitlines()
    assert output[-2:] == ["deployment/lws-controller-manager rolled out", "webhooks are reachable"]


def test_namespace_admits_only_restricted_pods(administrator: Administrator) -> None:
    """The `restricted` Pod Security Standard is enforced, and the manager pods comply with it."""
    administrator.install()
    pods = administrator.there("pods", *IN, "-l", "control-plane=controller-manager")["items"]
    assert len(pods) == 2
    refused = administrator.kubectl("run", "other", "--image=other:1", *IN, code=1)
    assert 'violates PodSecurity "restricted' in refused


def test_update_keeps_certificates_and_configuration(administrator: Administrator) -> None:
    """Values that the manager writes are preserved.

    Only another configuration replaces the configuration (R-OP-50).
    """
    administrator.lws("install")
    bundle = base64.b64encode(b"-----BEGIN CERTIFICATE-----\n").decode()
    administrator.kubectl("patch", *SECRET, "-p", f'{{"data": {{"ca.crt": "{bundle}"}}}}')
    edited = {"data": {"controller_manager_config.yaml": OWN_CONFIGURATION}}
    administrator.kubectl("patch", *CONFIGURATION, "--type=merge", "-p", str(edited).replace("'", '"'))
    template = administrator.there(*DEPLOYMENT)["spec"]["template"]

    output = administrator.lws("install", "--image=lws:2", "--replicas=3")
    assert "configmap/lws-manager-config unchanged" in output
    assert "poddisruptionbudget/lws-controller-manager unchanged" in output
    assert administrator.there(*SECRET)["data"] == {"ca.crt": bundle}
    assert administrator.there(*CONFIGURATION)["data"] == edited["data"]
    deployment = administrator.there(*DEPLOYMENT)
    assert deployment["spec"]["replicas"] == 3
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "lws:2"
    assert deployment["spec"]["template"]["metadata"] != template["metadata"]

    other = administrator.directory / "config.yaml"
    other.write_text(OWN_CONFIGURATION.replace("50", "75"))
    assert "configmap/lws-manager-config configured" in administrator.lws("install", "--config", str(other))
    assert "qps: 75" in administrator.there(*CONFIGURATION)["data"]["controller_manager_config.yaml"]


def go_installation() -> list[dict[str, Any]]:
    """Return the installation of a Go manager with the same names and different permissions (contract 12)."""
    installed = {(kind.kind, obj["metadata"]["name"]): obj for kind, obj in build_all(MANAGED, InstallSettings())}
    role = installed["ClusterRole", "lws-manager-role"]
    deployment = installed["Deployment", "lws-controller-manager"]
    definition = installed["CustomResourceDefinition", "leaderworkersets.leaderworkerset.x-k8s.io"]
    pod = deployment["spec"]["template"]["spec"]
    container = pod["containers"][0] | {
        "image": "registry.k8s.io/lws/lws:v0.10.0",
        "args": ["--config=/controller_manager_config.yaml", "--zap-log-level=4"],
        "env": [{"name": "OTHER", "value": "kept"}],
    }
    service = {"name": "lws-webhook-service", "namespace": "lws-system", "path": "/convert"}
    convert = {
        "strategy": "Webhook",
        "webhook": {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1"]},
    }
    changed = [
        role | {"rules": [{"apiGroups": [""], "resources": ["secrets", "nodes"], "verbs": ["get", "update"]}]},
        deployment
        | {
            "spec": deployment["spec"]
            | {"template": deployment["spec"]["template"] | {"spec": pod | {"containers": [container]}}}
        },
        definition | {"spec": definition["spec"] | {"conversion": convert}},
    ]
    replaced = {(obj["kind"], obj["metadata"]["name"]) for obj in changed}
    same = [
        obj for key, obj in installed.items() if key not in replaced and not key[0].endswith("WebhookConfiguration")
    ]
    return [*same, *changed]


def test_go_manager_is_replaced_in_place(fresh: Administrator) -> None:
    """LeaderWorkerSets do not change, and no conversion of older CRDs is called (R-OP-48, R-OP-55, R-API-4)."""
    fresh.kubectl("apply", "--server-side", "-f", "-", objects=go_installation())
    fresh.await_kind()
    fresh.kubectl("create", "-f", "-", objects=[objects.lws("web", replicas=1, size=2)])
    before, web = fresh.there(*DEPLOYMENT), fresh.there("lws/web")

    output = fresh.lws("install")

    assert "deployment/lws-controller-manager configured" in output
    assert "serviceaccount/lws-controller-manager unchanged" in output
    deployment = fresh.there(*DEPLOYMENT)
    assert deployment["metadata"]["uid"] == before["metadata"]["uid"]
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == InstallSettings().image
    assert container["args"][1] == "--zap-log-level=2"
    assert "secrets" not in str(fresh.there("clusterrole/lws-manager-role")["rules"])
    assert fresh.there("lws/web") == web


def test_existing_namespace_is_not_changed(fresh: Administrator) -> None:
    fresh.kubectl("create", "namespace", "lws-system")
    before = fresh.there("namespace/lws-system")
    output = fresh.lws("install")
    assert "namespace/lws-system unchanged, because it was not created by an installer" in output
    assert fresh.there("namespace/lws-system") == before


def test_second_installation_on_a_cluster_is_rejected(administrator: Administrator) -> None:
    """The webhooks and the roles of an installation apply to the whole cluster."""
    administrator.lws("install")
    for command in ("install", "uninstall"):
        refused = administrator.lws(command, "-n", "elsewhere", code=1)
        assert "LeaderWorkerSet is installed in namespace lws-system, not in elsewhere" in refused
    assert administrator.get("namespace/elsewhere") is None


def test_deployment_of_a_different_installer_is_named(administrator: Administrator) -> None:
    """A Helm release with a different name has a different selector, and selectors are immutable."""
    administrator.lws("install")
    deployment = administrator.there(*DEPLOYMENT)
    administrator.kubectl("delete", *DEPLOYMENT)
    labels = {"app.kubernetes.io/name": "lws", "app.kubernetes.io/instance": "mine"}
    spec = deployment["spec"] | {"selector": {"matchLabels": labels}}
    spec["template"]["metadata"]["labels"] = labels
    own = {name: deployment["metadata"][name] for name in ("name", "namespace")}
    other = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": own, "spec": spec}
    administrator.kubectl("create", "-f", "-", objects=[other])
    administrator.kubectl("delete", *CONFIGURATION)
    refused = administrator.lws("install", code=1)
    assert "deployment/lws-controller-manager:" in refused
    assert "no objects were installed" in refused
    assert administrator.get(*CONFIGURATION) is None
    administrator.kubectl("delete", *DEPLOYMENT)
    assert (
        "was created by a different installer with different labels; delete deployment lws-controller-manager first"
        in refused
    )


def test_full_definition_has_descriptions(fresh: Administrator) -> None:
    fresh.lws("install", "--crd=full")
    fresh.await_kind()
    own = fresh.kubectl("explain", "lws.spec.leaderWorkerTemplate.size")
    assert "The number of pods in a group" in own
    pods = fresh.kubectl("explain", "lws.spec.leaderWorkerTemplate.workerTemplate.spec.nodeSelector")
    assert "must be true for the pod to fit on a node" in pods
    assert words(fresh.lws("install", "--crd=full")) == {"unchanged"}


def test_missing_permissions_to_install_are_named(fresh: Administrator) -> None:
    token = fresh.kubectl("create", "token", "default").strip()
    config = fresh.directory / "weak.kubeconfig"
    text = fresh.plane.kubeconfig.read_text().replace(fresh.plane.token, token)
    config.write_text(text)
    refused = fresh.lws("install", "--kubeconfig", str(config), code=1)
    assert 'clusterrolebindings.rbac.authorization.k8s.io "lws-manager-rolebinding" is forbidden' in refused
    assert fresh.get("namespace/lws-system") is None


def test_installed_objects_are_complete_and_labeled(administrator: Administrator) -> None:
    administrator.lws("install")
    installed = administrator.installed()
    assert installed.keys() == {
        (kind.kind, obj["metadata"]["name"]) for kind, obj in build_all(MANAGED, InstallSettings())
    }
    assert all(metadata.is_installed(obj) for obj in installed.values())


def test_commands_of_the_page_work(fresh: Administrator) -> None:
    """The nodes of this cluster do not pull images."""
    page = "".join((ROOT / f"docs/how-to/{name}.md").read_text() for name in ("install", "uninstall"))
    blocks = "".join(re.findall(r"^```bash\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    lines = [shlex.split(line, comments=True)[1:] for line in blocks.splitlines() if line.startswith("lws ")]
    fresh.install()
    with served(fresh, "live"):
        printed = [fresh.lws(*lines[0])]
    printed += [fresh.lws(*line) for line in lines[1:]]
    assert "deployment/lws-controller-manager rolled out" in printed[0]
    assert "namespace/lws-system deleted" in printed[-1]
    for option in re.findall(r"^\| `(--[a-z-]+)", page, re.MULTILINE):
        assert option in fresh.lws("install", "--help")
