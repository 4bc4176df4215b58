"""Builds the dashboard on a cluster, which is optional: Deployment, Service and read-only account.

The dashboard reads objects with its own account. Each user logs in with a token of the cluster, and must be allowed to
read the same objects; actions use that token. The account has no permission to write, and none to read Secrets.
"""

from collections.abc import Sequence
from typing import Final

from kuberuntime.objects import resources
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from kuberuntime.policyrules import Permission, policy_rules
from leaderworkerset.api.metadata import LABELS, build
from leaderworkerset.api.resources import DISAGGREGATED_SETS, LEADERWORKERSETS
from leaderworkerset.install.workload import CONTAINER_SECURITY, POD_SECURITY
from lwsctl.cli.shell import hostplatform

IMAGE: Final = hostplatform.IMAGE
"""The CLI image, because the manager image does not contain the dashboard."""

NAME: Final = "lws-dashboard"
ROLE: Final = "lws-dashboard-role"
PORT: Final = 8080
SELECTOR: Final = {**LABELS, "app.kubernetes.io/component": "dashboard"}
"""The labels of the pods, which no selector of the manager matches."""

FOLLOWED: Final = (LEADERWORKERSETS, DISAGGREGATED_SETS, resources.PODS, resources.CORE_EVENTS)
LISTED: Final = (
    resources.CONFIG_MAPS,
    resources.CONTROLLER_REVISIONS,
    resources.DEPLOYMENTS,
    resources.LEASES,
    resources.NODES,
    resources.PERSISTENT_VOLUME_CLAIMS,
    resources.POD_DISRUPTION_BUDGETS,
    resources.SERVICES,
    resources.STATEFULSETS,
    resources.STORAGE_CLASSES,
    resources.CUSTOM_RESOURCE_DEFINITIONS,
)
"""The kinds that pages and diagnoses read. The dashboard reports kinds that it is not permitted to read."""

READING: Final = (
    *(Permission(kind, ("get", "list", "watch")) for kind in FOLLOWED),
    *(Permission(kind, ("get", "list", "watch")) for kind in LISTED),
    Permission(resources.PODS, ("get",), "log"),
    Permission(resources.POD_METRICS, ("get", "list")),
)
RESOURCES: Final[JSONObject] = {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}}
COMMAND: Final = ("/opt/lws/bin/python", "-IBu", "-m", "lwsctl.cli", "dashboard")
ARGUMENTS: Final = ("--all-namespaces", "--listen=0.0.0.0", f"--port={PORT}", "--no-browser", "--allow-actions")


def build_dashboard(namespace: str, image: str) -> Sequence[tuple[Resource, JSONObject]]:
    """Build every object, in the order of application."""
    subject = {"kind": resources.SERVICE_ACCOUNTS.kind, "name": NAME, "namespace": namespace}
    reference = {"apiGroup": resources.CLUSTER_ROLES.group, "kind": resources.CLUSTER_ROLES.kind, "name": ROLE}
    binding = build(resources.CLUSTER_ROLE_BINDINGS, f"{NAME}-rolebinding", roleRef=reference, subjects=[subject])
    port = {"name": "http", "port": 80, "targetPort": PORT, "protocol": "TCP"}
    service = build(resources.SERVICES, NAME, namespace, spec={"selector": SELECTOR, "ports": [port]})
    return [
        (resources.SERVICE_ACCOUNTS, build(resources.SERVICE_ACCOUNTS, NAME, namespace)),
        (resources.CLUSTER_ROLES, build(resources.CLUSTER_ROLES, ROLE, rules=policy_rules(READING))),
        (resources.CLUSTER_ROLE_BINDINGS, binding),
        (resources.SERVICES, service),
        (resources.NETWORK_POLICIES, _network_policy(namespace)),
        (resources.DEPLOYMENTS, _deployment(namespace, image)),
    ]


def _network_policy(namespace: str) -> JSONObject:
    """Build the policy that blocks other pods. `kubectl port-forward` and probes use the node."""
    spec = {"podSelector": {"matchLabels": SELECTOR}, "policyTypes": ["Ingress"], "ingress": []}
    return build(resources.NETWORK_POLICIES, NAME, namespace, spec=spec)


def _deployment(namespace: str, image: str) -> JSONObject:
    pod = {
        "serviceAccountName": NAME,
        "securityContext": POD_SECURITY,
        "terminationGracePeriodSeconds": 10,
        "containers": [_container(image)],
        "volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}],
    }
    # Sessions are in memory, so there is one pod. After a restart, users log in to the new pod.
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": SELECTOR},
        "template": {"metadata": {"labels": SELECTOR}, "spec": pod},
    }
    return build(resources.DEPLOYMENTS, NAME, namespace, spec=spec)


def _container(image: str) -> JSONObject:
    probe = {"httpGet": {"path": "/healthz", "port": PORT}, "periodSeconds": 10}
    return {
        "name": "dashboard",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": list(COMMAND),
        "args": list(ARGUMENTS),
        "env": [{"name": "HOME", "value": "/tmp"}],  # noqa: S108 - a mount
        "ports": [{"name": "http", "containerPort": PORT, "protocol": "TCP"}],
        "livenessProbe": probe | {"initialDelaySeconds": 20},
        "readinessProbe": probe,
        "resources": RESOURCES,
        "securityContext": CONTAINER_SECURITY,
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108 - likewise
    }
