"""Builds the objects of the operator installation: kind, namespace, permissions, Deployment (R-OP-32 to R-OP-35).

The operator has the permissions that its controllers declare, and the permissions that it grants: an API server allows
no client to create a role with more permissions than the client has (R-OP-29).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    EVENTS,
    NAMESPACES,
    NETWORK_POLICIES,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from kuberuntime.policyrules import Permission, policy_rules
from kuberuntime.serving import permissions as kube
from leaderworkerset.install import installsettings
from leaderworkerset.install.installsettings import InstallSettings
from leaderworkerset.install.objects import POD_SECURITY_LABEL, KindDeclarations, build_all
from leaderworkerset.install.operatornames import IMAGE_VARIABLE, LEASE, OPERATOR, OPERATORS, SINGLETON
from leaderworkerset.install.workload import CONTAINER_SECURITY, POD_SECURITY
from leaderworkerset.kinds.registry import Registry
from leaderworkerset.operator.openshift import CLUSTER, INFRASTRUCTURES
from leaderworkerset.operator.operand import PROMETHEUS
from leaderworkerset.operator.operatorcrd import operator_crd

PORT: Final = 8443
LABELS: Final = {"name": OPERATOR, "app.kubernetes.io/name": "lws-operator"}
"""The label of the Go operator's pods, which the published recipe also uses as selector (R-OP-58)."""

HANDED_ON: Final = f"{OPERATOR}-operand"
METRICS_SERVICE: Final = f"{OPERATOR}-metrics"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSettings:
    """The namespace and images of the operator installation."""

    namespace: str = OPERATOR
    image: str = installsettings.IMAGE
    operand_image: str = installsettings.IMAGE
    command_image: str = ""
    """The CLI image with must-gather, or an empty string if it was not pushed."""


@dataclass(frozen=True, slots=True)
class Rights:
    """The rules of the operator account, for the whole cluster and for its namespace."""

    cluster: Sequence[JSONObject]
    namespace: Sequence[JSONObject]


def build_operator(
    kinds: Registry, declared: KindDeclarations, settings: OperatorSettings
) -> Sequence[tuple[Resource, JSONObject]]:
    """Build every object in the order of application. The object `cluster` is last."""
    own, handed = own_rights(kinds), handed_rights(declared)
    namespace = settings.namespace
    return [
        (CUSTOM_RESOURCE_DEFINITIONS, labeled(operator_crd())),
        (NAMESPACES, _namespace(namespace)),
        *_roles(HANDED_ON, handed, namespace),
        *_roles(OPERATOR, own, namespace),
        (SERVICE_ACCOUNTS, build(SERVICE_ACCOUNTS, OPERATOR, namespace)),
        (SERVICES, metrics_service(namespace)),
        (NETWORK_POLICIES, _network_policy(namespace)),
        (DEPLOYMENTS, deployment(settings)),
        (OPERATORS, cluster()),
    ]


def own_rights(kinds: Registry) -> Rights:
    """Return the operator's own permissions, for its controllers, lease, metrics and the cluster topology."""
    namespaced = [
        permission
        for permission in kinds.permissions
        if permission.resource.namespaced and permission.resource != EVENTS
    ]
    cluster_wide = [permission for permission in kinds.permissions if not permission.resource.namespaced]
    topology = Permission(INFRASTRUCTURES, ("get",), names=(CLUSTER.name,))
    return Rights(
        policy_rules((*cluster_wide, *kube.METRICS, topology)),
        policy_rules(
            (*namespaced, *(permission for permission in kinds.permissions if permission.resource == EVENTS), *_lease())
        ),
    )


def _lease() -> tuple[Permission, ...]:
    return kube.leader_election(LEASE)


def handed_rights(declared: KindDeclarations) -> Rights:
    """Return the permissions of the operand roles, for any certificate issuer (R-OP-29)."""
    cluster: list[JSONObject] = []
    namespace: list[JSONObject] = []
    for install_settings in (InstallSettings(), InstallSettings(certificates="cert-manager", prometheus=PROMETHEUS)):
        for kind, obj in build_all(declared, install_settings):
            if kind == CLUSTER_ROLES:
                cluster += obj["rules"]
            elif kind == ROLES:
                namespace += obj["rules"]
    return Rights(_distinct(cluster), _distinct(namespace))


def deployment(settings: OperatorSettings) -> JSONObject:
    """Build the operator Deployment (R-OP-35), with probes and requests, which the Go operator does not have."""
    pod = {
        "serviceAccountName": OPERATOR,
        "securityContext": POD_SECURITY,
        "terminationGracePeriodSeconds": 15,
        "containers": [_container(settings)],
        "volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}],
    }
    annotations = {"kubectl.kubernetes.io/default-container": OPERATOR, "openshift.io/required-scc": "restricted-v2"}
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": {"name": OPERATOR}},
        "template": {"metadata": {"labels": dict(LABELS), "annotations": annotations}, "spec": pod},
    }
    return build(DEPLOYMENTS, OPERATOR, settings.namespace, spec=spec)


def cluster(**spec: object) -> JSONObject:
    """Build the object `cluster` that consoles show as an example (R-OP-64)."""
    values = {"managementState": "Managed", "logLevel": "Normal", "operatorLogLevel": "Normal", **spec}
    return build(OPERATORS, SINGLETON.name, spec=values)


def metrics_service(namespace: str) -> JSONObject:
    """Build the Service for metrics scrapers."""
    port = {"name": "https", "port": PORT, "targetPort": PORT, "protocol": "TCP"}
    return build(SERVICES, METRICS_SERVICE, namespace, spec={"selector": {"name": OPERATOR}, "ports": [port]})


def build(resource: Resource, name: str, namespace: str = "", /, **fields: object) -> JSONObject:
    """Build an object of the operator installation."""
    own: JSONObject = {"name": name} | ({"namespace": namespace} if namespace else {})
    return labeled({"apiVersion": resource.api_version, "kind": resource.kind, "metadata": own, **fields})


def labeled(obj: JSONObject) -> JSONObject:
    """Return an object with the labels of the operator installation."""
    return obj | {"metadata": meta.metadata(obj) | {"labels": {**meta.labels(obj), **LABELS}}}


def _namespace(name: str) -> JSONObject:
    """Build the namespace without labels, because it can belong to an existing installation."""
    own = {"name": name, "labels": {POD_SECURITY_LABEL: "restricted", "openshift.io/cluster-monitoring": "true"}}
    return {"apiVersion": NAMESPACES.api_version, "kind": NAMESPACES.kind, "metadata": own}


def _container(settings: OperatorSettings) -> JSONObject:
    return {
        "name": OPERATOR,
        "image": settings.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/lws-operator"],
        "args": ["operator"],
        "env": [
            {"name": "OPERATOR_NAME", "value": OPERATOR},
            {"name": IMAGE_VARIABLE, "value": settings.operand_image},
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ],
        "ports": [{"name": "metrics", "containerPort": PORT, "protocol": "TCP"}],
        "livenessProbe": _probe("/livez", delay=15, period=20),
        "readinessProbe": _probe("/readyz", delay=5, period=10),
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": CONTAINER_SECURITY,
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108 - memory of this pod
    }


def _probe(path: str, *, delay: int, period: int) -> JSONObject:
    target = {"path": path, "port": PORT, "scheme": "HTTPS"}
    return {"httpGet": target, "initialDelaySeconds": delay, "periodSeconds": period}


def _network_policy(namespace: str) -> JSONObject:
    spec = {
        "podSelector": {"matchLabels": {"name": OPERATOR}},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [{"namespaceSelector": {}}], "ports": [{"port": PORT, "protocol": "TCP"}]}],
    }
    return build(NETWORK_POLICIES, OPERATOR, namespace, spec=spec)


def _roles(name: str, rights: Rights, namespace: str) -> list[tuple[Resource, JSONObject]]:
    subjects = [{"kind": SERVICE_ACCOUNTS.kind, "name": OPERATOR, "namespace": namespace}]

    def refer(kind: Resource) -> JSONObject:
        return {"roleRef": {"apiGroup": kind.group, "kind": kind.kind, "name": name}, "subjects": subjects}

    return [
        (CLUSTER_ROLES, build(CLUSTER_ROLES, name, rules=list(rights.cluster))),
        (CLUSTER_ROLE_BINDINGS, build(CLUSTER_ROLE_BINDINGS, name, **refer(CLUSTER_ROLES))),
        (ROLES, build(ROLES, name, namespace, rules=list(rights.namespace))),
        (ROLE_BINDINGS, build(ROLE_BINDINGS, name, namespace, **refer(ROLES))),
    ]


def _distinct(rules: Iterable[JSONObject]) -> list[JSONObject]:
    distinct: list[JSONObject] = []
    for rule in rules:
        if rule not in distinct:
            distinct.append(rule)
    return distinct
