"""Lists API groups whose kinds have no effect in a local cluster. Pure.

The table does not contain kinds that pods depend on, for example to create Secrets. An unserved kind of this sort is an
error.
"""

from typing import Final

ACCESS: Final = "this cluster does not use RBAC"
TRAFFIC: Final = "this cluster does not route external traffic"
METRICS: Final = "this cluster does not collect metrics"
SIZES: Final = "this cluster does not autoscale workloads"
QUEUES: Final = "this cluster does not have Kueue queues"
MACHINE: Final = "containers run as processes on this machine"

IDLE: Final = {
    "rbac.authorization.k8s.io": ACCESS,
    **dict.fromkeys(
        (
            "networking.k8s.io", "gateway.networking.k8s.io", "gateway.networking.x-k8s.io", "gateway.envoyproxy.io",
            "inference.networking.k8s.io", "inference.networking.x-k8s.io", "networking.istio.io", "security.istio.io",
            "networking.gke.io", "cloud.google.com", "traefik.io", "elbv2.k8s.aws", "route.openshift.io",
        ),
        TRAFFIC,
    ),
    **dict.fromkeys(("monitoring.coreos.com", "monitoring.googleapis.com", "opentelemetry.io"), METRICS),
    **dict.fromkeys(("keda.sh", "autoscaling.k8s.io", "autoscaling.aibrix.ai", "llmd.ai", "karpenter.sh", "karpenter.k8s.aws"), SIZES),
    "kueue.x-k8s.io": QUEUES,
    "node.k8s.io": MACHINE,
}  # fmt: skip
"""API groups whose kinds have no effect in a local cluster, and the reasons."""


def reason(api_version: str) -> str:
    """Return the reason why kinds of a group version have no effect, or an empty string if they may have one.

    >>> reason("keda.sh/v1alpha1"), reason("apps/v1")
    ('this cluster does not autoscale workloads', '')
    """
    return IDLE.get(api_version.rpartition("/")[0], "")
