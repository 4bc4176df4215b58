"""Tests the objects of an installation with golden files, and properties that the files do not explain."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kuberuntime.objects import meta
from kuberuntime.objects.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    NAMESPACES,
    NETWORK_POLICIES,
    POD_DISRUPTION_BUDGETS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICES,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)
from leaderworkerset.api import metadata
from leaderworkerset.install import rendering
from leaderworkerset.install.installsettings import InstallSettings
from leaderworkerset.install.objects import build_all
from leaderworkerset.kinds.managedkinds import MANAGED

GOLDEN = Path(__file__).parents[3] / "golden" / "install"
DEFAULT = InstallSettings(image="leaderworkerset:test")
CHOSEN = InstallSettings(
    namespace="serving",
    image="registry.example/lws@sha256:0123",
    replicas=3,
    configuration="apiVersion: config.lws.x-k8s.io/v1\nkind: Configuration\n",
)


def texts(settings: InstallSettings) -> str:
    """Return all objects except the CRD, which has separate tests."""
    return rendering.documents(obj for kind, obj in build_all(MANAGED, settings) if kind != CUSTOM_RESOURCE_DEFINITIONS)


@pytest.mark.parametrize(("name", "settings"), [("default", DEFAULT), ("chosen", CHOSEN)])
def test_objects_equal_the_golden_file(name: str, settings: InstallSettings) -> None:
    """The objects equal the golden file (contract 12.3 to 12.6).

    After an intended change, write `texts(settings)` to it.
    """
    assert texts(settings) == (GOLDEN / f"{name}.yaml").read_text()


def test_every_object_has_the_installation_labels() -> None:
    """Each object has the installation labels (R-OP-46)."""
    assert all(metadata.is_installed(obj) for _, obj in build_all(MANAGED, CHOSEN))


def test_names_equal_those_of_the_go_manager() -> None:
    """An existing installation is replaced in place (contract 12.3 to 12.6, R-OP-46)."""
    names = {kind.kind: [meta.name(obj) for each, obj in build_all(MANAGED, DEFAULT) if each == kind] for kind in KINDS}
    assert names == KINDS_AND_NAMES
    accounts = [meta.name(obj) for kind, obj in build_all(MANAGED, DEFAULT) if kind.kind == "ServiceAccount"]
    assert accounts == ["lws-controller-manager"]
    assert len(build_all(MANAGED, DEFAULT)) == 23


KINDS_AND_NAMES = {
    "Namespace": ["lws-system"],
    "CustomResourceDefinition": [
        "leaderworkersets.leaderworkerset.x-k8s.io",
        "disaggregatedsets.disaggregatedset.x-k8s.io",
        "disaggregatedsetrolescalers.disaggregatedset.x-k8s.io",
    ],
    "ClusterRole": ["lws-manager-role", "lws-proxy-role", "lws-metrics-reader"],
    "ClusterRoleBinding": ["lws-manager-rolebinding", "lws-proxy-rolebinding"],
    "Role": ["lws-leader-election-role", "lws-certificates-role"],
    "RoleBinding": ["lws-leader-election-rolebinding", "lws-certificates-rolebinding"],
    "ConfigMap": ["lws-manager-config"],
    "Secret": ["lws-webhook-server-cert"],
    "Service": ["lws-webhook-service", "lws-controller-manager-metrics-service"],
    "Deployment": ["lws-controller-manager"],
    "NetworkPolicy": ["lws-controller-manager"],
    "PodDisruptionBudget": ["lws-controller-manager"],
    "MutatingWebhookConfiguration": ["lws-mutating-webhook-configuration"],
    "ValidatingWebhookConfiguration": ["lws-validating-webhook-configuration"],
}
KINDS: tuple[Resource, ...] = (
    NETWORK_POLICIES,
    POD_DISRUPTION_BUDGETS,
    *(NAMESPACES, CUSTOM_RESOURCE_DEFINITIONS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, ROLES, ROLE_BINDINGS),
    *(CONFIG_MAPS, SECRETS, SERVICES, DEPLOYMENTS, MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS),
)


def test_namespaced_objects_use_the_given_namespace() -> None:
    for kind, obj in build_all(MANAGED, CHOSEN):
        assert meta.namespace(obj) == ("serving" if kind.namespaced else "")
    assert "lws-system" not in texts(CHOSEN)


def test_referenced_objects_are_applied_first() -> None:
    """The namespace is first, roles precede role bindings, and webhook configurations are last."""
    kinds = [kind.kind for kind, _ in build_all(MANAGED, DEFAULT)]
    assert kinds[0] == "Namespace"
    assert kinds[-3:] == ["Deployment", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]


def test_reinstallation_keeps_certificates() -> None:
    """An apply contains neither the Secret data nor a CA bundle, so it changes neither (R-OP-50)."""
    objects = {meta.name(obj): obj for _, obj in build_all(MANAGED, DEFAULT)}
    assert "data" not in objects["lws-webhook-server-cert"]
    assert "caBundle" not in str(objects["lws-mutating-webhook-configuration"])
    assert "caBundle" not in str(objects["lws-validating-webhook-configuration"])


def test_configuration_change_changes_the_pod_template() -> None:
    """A file that is mounted with `subPath` is not updated in a running pod."""
    assert annotations(DEFAULT) != annotations(CHOSEN)
    assert annotations(DEFAULT) == annotations(InstallSettings(namespace="elsewhere"))


def annotations(settings: InstallSettings) -> Any:
    deployment = next(obj for kind, obj in build_all(MANAGED, settings) if kind == DEPLOYMENTS)
    return deployment["spec"]["template"]["metadata"]["annotations"]


def test_network_policy_permits_webhooks_and_metrics_only() -> None:
    """The NetworkPolicy permits only webhooks and metrics (R-OP-74)."""
    (policy,) = [obj for kind, obj in build_all(MANAGED, DEFAULT) if kind == NETWORK_POLICIES]
    (deployment,) = [obj for kind, obj in build_all(MANAGED, DEFAULT) if kind == DEPLOYMENTS]
    assert policy["spec"]["podSelector"] == deployment["spec"]["selector"]
    assert [port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]] == [9443, 8443]


def test_manager_has_a_memory_limit() -> None:
    (deployment,) = [obj for kind, obj in build_all(MANAGED, DEFAULT) if kind == DEPLOYMENTS]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"memory": "2Gi"}


def test_default_image_names_its_host() -> None:
    """An image that runs with the manager's permissions is never pulled from a public registry."""
    assert InstallSettings().image.startswith("localhost/")


def test_manifests_have_no_yaml_anchors() -> None:
    assert "&id" not in texts(CHOSEN)
    assert list(yaml.safe_load_all(texts(CHOSEN)))
