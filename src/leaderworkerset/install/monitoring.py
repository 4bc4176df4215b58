"""The objects that Prometheus needs: a ServiceMonitor, and the permissions to find the service and to read it (R-OP-23)."""

from typing import Final

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ENDPOINTS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from kuberuntime.policyrules import Permission, policy_rules
from leaderworkerset.api.metadata import METRICS_SERVICE, SELECTOR, build
from leaderworkerset.install import certmanager
from leaderworkerset.install.foreign import SERVICE_MONITORS
from leaderworkerset.install.rbac import METRICS_READER

MONITOR: Final = "lws-controller-manager-metrics-monitor"
ROLE: Final = "lws-prometheus-k8s"
ACCOUNTS: Final = ("prometheus-k8s", "prometheus-operator")
"""The first one scrapes."""

FIND: Final = tuple(Permission(kind, ("get", "list", "watch")) for kind in (SERVICES, ENDPOINTS, PODS))
TOKEN: Final = "/var/run/secrets/kubernetes.io/serviceaccount/token"  # noqa: S105 - a path


def roles(namespace: str, prometheus: str) -> list[tuple[Resource, JSONObject]]:
    """Build the roles with which the Prometheus of another namespace finds its targets, and may read their metrics."""
    subjects = [{"kind": SERVICE_ACCOUNTS.kind, "name": name, "namespace": prometheus} for name in ACCOUNTS]
    reference = {"apiGroup": ROLES.group, "kind": ROLES.kind, "name": ROLE}
    reader = {"apiGroup": CLUSTER_ROLES.group, "kind": CLUSTER_ROLES.kind, "name": METRICS_READER}
    binding = f"{METRICS_READER}-rolebinding"
    return [
        (CLUSTER_ROLE_BINDINGS, build(CLUSTER_ROLE_BINDINGS, binding, roleRef=reader, subjects=subjects[:1])),
        (ROLES, build(ROLES, ROLE, namespace, rules=policy_rules(FIND))),
        (ROLE_BINDINGS, build(ROLE_BINDINGS, ROLE, namespace, roleRef=reference, subjects=subjects)),
    ]


def service_monitor(namespace: str, *, verified: bool) -> JSONObject:
    """Build the monitor; `verified` says whether cert-manager issues the certificate of the metrics."""
    name = f"{METRICS_SERVICE}.{namespace}.svc"
    authority = {"secret": {"name": certmanager.METRICS_SECRET, "key": "ca.crt"}}
    endpoint = {
        "port": "https",
        "scheme": "https",
        "path": "/metrics",
        # The namespace of a LeaderWorkerSet, not that of the pod that was scraped.
        "honorLabels": True,
        "bearerTokenFile": TOKEN,
        "tlsConfig": {"ca": authority, "serverName": name} if verified else {"insecureSkipVerify": True},
    }
    spec = {"endpoints": [endpoint], "selector": {"matchLabels": dict(SELECTOR)}}
    return build(SERVICE_MONITORS, MONITOR, namespace, spec=spec)
