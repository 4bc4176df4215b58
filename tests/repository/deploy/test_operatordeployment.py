"""Tests the Deployment, the permissions, and the order of the objects that install the operator."""

from typing import Any, Final

import pytest
from deploy.packages import operatordeployment
from deploy.packages.operatordeployment import OperatorSettings, build_operator

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.operator import operatorcontroller
from leaderworkerset.operator.operand import OperatorPlace
from leaderworkerset.operator.operatorprocess import registry
from leaderworkerset.operator.verbosity import Verbosity

CHOSEN = OperatorSettings(namespace="operators", image="example.com/operator:1", operand_image="example.com/lws:1")
KINDS = registry(OperatorPlace(namespace="operators", image="", version="", declared=MANAGED), Verbosity())
OBJECTS = build_operator(KINDS, MANAGED, CHOSEN)


def of(kind: str) -> list[JSONObject]:
    return [obj for resource, obj in OBJECTS if resource.kind == kind]


def pod_template() -> JSONObject:
    (deployment,) = of("Deployment")
    template: JSONObject = deployment["spec"]["template"]
    return template


def allowed(rules: list[dict[str, Any]]) -> set[tuple[str, str, str]]:
    return {
        (rule["apiGroups"][0], name, verb) for rule in rules for name in rule["resources"] for verb in rule["verbs"]
    }


def test_objects_are_ordered_by_dependency() -> None:
    """The CRD is the first object, and `cluster` is the last object.

    The operator's objects and the operand's have different names (R-OP-34).
    """
    found = [(kind.kind, meta.name(obj)) for kind, obj in OBJECTS]
    roles = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
    assert found[:2] == [
        ("CustomResourceDefinition", "leaderworkersetoperators.operator.openshift.io"),
        ("Namespace", "operators"),
    ]
    assert found[2:6] == [(kind, "openshift-lws-operator-operand") for kind in roles]
    assert found[6:11] == [(kind, "openshift-lws-operator") for kind in (*roles, "ServiceAccount")]
    assert found[-2:] == [("Deployment", "openshift-lws-operator"), ("LeaderWorkerSetOperator", "cluster")]


def test_namespace_is_monitored_and_restricted() -> None:
    """Namespace labels enable monitoring and Pod Security (R-OP-23, R-OP-34, R-OP-72)."""
    (namespace,) = of("Namespace")
    labels = meta.labels(namespace)
    assert labels["openshift.io/cluster-monitoring"] == "true"
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


def test_cluster_object_equals_the_published_sample() -> None:
    """The sample of the published operator is applied unchanged (R-OP-34)."""
    (cluster,) = of("LeaderWorkerSetOperator")
    assert cluster["spec"] == {"managementState": "Managed", "logLevel": "Normal", "operatorLogLevel": "Normal"}


def test_bindings_bind_the_account_of_the_namespace() -> None:
    """Bindings refer to the account in the operator's namespace (R-OP-29, R-OP-34)."""
    for obj in (*of("ClusterRoleBinding"), *of("RoleBinding")):
        assert obj["subjects"] == [
            {"kind": "ServiceAccount", "name": "openshift-lws-operator", "namespace": "operators"}
        ]
        assert obj["roleRef"]["name"] == meta.name(obj)


def test_single_operator_runs_without_privileges() -> None:
    """The single replica complies with the `restricted` Pod Security Standard (R-OP-9, R-OP-35)."""
    (deployment,) = of("Deployment")
    assert deployment["spec"]["replicas"] == 1
    spec = pod_template()["spec"]
    (container,) = spec["containers"]
    assert spec["serviceAccountName"] == container["name"] == "openshift-lws-operator"
    assert spec["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    (volume,) = spec["volumes"]
    (mount,) = container["volumeMounts"]
    assert (volume["name"], mount) == (mount["name"], {"name": "tmp", "mountPath": "/tmp"})
    assert "emptyDir" in volume
    assert container["ports"] == [{"name": "metrics", "containerPort": 8443, "protocol": "TCP"}]
    assert [*container["command"], *container["args"]] == ["/lws-operator", "operator"]


def test_environment_names_the_operand_and_the_pod() -> None:
    """Events require the pod name (R-OP-9)."""
    (container,) = pod_template()["spec"]["containers"]
    variables = {one["name"]: one.get("value") or one["valueFrom"]["fieldRef"]["fieldPath"] for one in container["env"]}
    assert variables == {
        "OPERATOR_NAME": "openshift-lws-operator",
        "RELATED_IMAGE_OPERAND_IMAGE": "example.com/lws:1",
        "POD_NAME": "metadata.name",
    }
    assert container["image"] == "example.com/operator:1"


@pytest.mark.parametrize(("probe", "path"), [("livenessProbe", "/livez"), ("readinessProbe", "/readyz")])
def test_operator_has_probes_and_resource_requests(probe: str, path: str) -> None:
    """The Deployment of the Go operator contains neither (R-OP-73, R-OP-35)."""
    (container,) = pod_template()["spec"]["containers"]
    assert container[probe]["httpGet"] == {"path": path, "port": 8443, "scheme": "HTTPS"}
    assert set(container["resources"]["requests"]) == {"cpu", "memory"}
    assert set(container["resources"]["limits"]) == {"memory"}
    assert container["imagePullPolicy"] == "IfNotPresent"


def test_openshift_objects_are_readable_by_name_only() -> None:
    """Lists and watches select the name, so that RBAC allows them (R-OP-12, R-OP-82)."""
    rules = [one for one in operatordeployment.own_rights(KINDS).cluster if one["apiGroups"] == ["config.openshift.io"]]
    assert {tuple(rule["resourceNames"]) for rule in rules} == {("cluster",)}
    assert {(name, verb) for _, name, verb in allowed(rules)} == {
        *((kind, verb) for kind in ("apiservers", "infrastructures") for verb in ("list", "watch")),
        ("infrastructures", "get"),
    }
    for cache in (operatorcontroller.API_SERVER, operatorcontroller.INFRASTRUCTURE):
        assert cache.selection.field_selector == "metadata.name=cluster"


def test_lease_permission_is_limited_to_the_own_lease() -> None:
    """Other leases cannot be changed (R-OP-12)."""
    rules = [rule for rule in operatordeployment.own_rights(KINDS).namespace if "leases" in rule["resources"]]
    named = {verb: rule.get("resourceNames") for rule in rules for verb in rule["verbs"]}
    assert named == {
        "create": None,
        "get": ["openshift-lws-operator-lock"],
        "update": ["openshift-lws-operator-lock"],
    }


ALL = ("create", "delete", "get", "list", "patch", "update", "watch")
UPSTREAM: dict[tuple[str, str], tuple[str, ...]] = {
    ("operator.openshift.io", "leaderworkersetoperators"): (*ALL, "deletecollection"),
    ("operator.openshift.io", "leaderworkersetoperators/status"): (*ALL, "deletecollection"),
    ("rbac.authorization.k8s.io", "clusterroles"): ALL,
    ("rbac.authorization.k8s.io", "clusterrolebindings"): ALL,
    ("rbac.authorization.k8s.io", "roles"): ALL,
    ("rbac.authorization.k8s.io", "rolebindings"): ALL,
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): ALL,
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): ALL,
    ("apiextensions.k8s.io", "customresourcedefinitions"): ALL,
    ("authentication.k8s.io", "tokenreviews"): ("create",),
    ("authorization.k8s.io", "subjectaccessreviews"): ("create",),
    ("coordination.k8s.io", "leases"): ALL,
    ("", "serviceaccounts"): ALL,
    ("", "secrets"): ALL,
    ("", "configmaps"): ALL,
    ("", "services"): ALL,
    ("apps", "deployments"): ALL,
    ("monitoring.coreos.com", "servicemonitors"): ALL,
    ("networking.k8s.io", "networkpolicies"): ALL,
    ("cert-manager.io", "certificates"): ("create", "get", "list", "patch", "update"),
    ("cert-manager.io", "issuers"): ("create", "get", "list", "patch", "update"),
}
"""Permissions of the Go operator that this operator also requires."""

MORE = {
    ("cert-manager.io", "certificates", "delete"),
    ("cert-manager.io", "certificates", "watch"),
    ("cert-manager.io", "issuers", "delete"),
    ("cert-manager.io", "issuers", "watch"),
    ("config.openshift.io", "infrastructures", "get"),
    *(("config.openshift.io", kind, verb) for kind in ("apiservers", "infrastructures") for verb in ("list", "watch")),
    *(("events.k8s.io", "events", verb) for verb in ("create", "patch")),
    *(("policy", "poddisruptionbudgets", verb) for verb in ALL),
}
"""Additional permissions of this operator. It watches and deletes owned objects, and reads profile and topology."""


def test_permissions_extend_those_of_the_go_operator() -> None:
    """Additional permissions are listed one by one (R-OP-32)."""
    own = operatordeployment.own_rights(KINDS)
    upstream = {(group, name, verb) for (group, name), verbs in UPSTREAM.items() for verb in verbs}
    assert allowed([*own.cluster, *own.namespace]) - upstream == MORE
    assert ("apiextensions.k8s.io", "customresourcedefinitions", "delete") not in allowed([*own.cluster])


READS: Final = {"get", "list", "watch"}
UNNAMED: Final = {"events", "leases", "tokenreviews", "subjectaccessreviews"}
"""Kinds that are created by requests without an object name."""


def test_operator_can_write_only_installed_objects() -> None:
    """The operator's token cannot change other roles, bindings or webhook configurations in the cluster (R-OP-32)."""
    own = operatordeployment.own_rights(KINDS)
    writing = [rule for rule in (*own.cluster, *own.namespace) if not READS.issuperset(rule["verbs"])]
    unnamed = {name for rule in writing if "resourceNames" not in rule for name in rule["resources"]}
    assert unnamed == UNNAMED
    names = {name for rule in writing for name in rule.get("resourceNames", [])}
    assert {"lws-manager-role", "lws-mutating-webhook-configuration", "cluster"} <= names
    secrets = [rule for rule in own.namespace if "secrets" in rule["resources"]]
    assert all(rule.get("resourceNames") for rule in secrets)
