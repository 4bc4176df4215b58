"""What depends on how many control plane nodes a cluster has: how long the operator's lease holds (R-OP-12)."""

from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource

INFRASTRUCTURES: Final = Resource("config.openshift.io", "v1", "infrastructures", "Infrastructure", namespaced=False)
SINGLE_REPLICA: Final = "SingleReplica"
TIMES: Final = (137.0, 107.0, 26.0)
SINGLE_REPLICA_TIMES: Final = (270.0, 240.0, 60.0)
"""Lease, renewal, retry in seconds: with a single control plane node, longer than that takes to restart."""


def is_single(infrastructure: JSONObject | None) -> bool:
    """Return whether there is one control plane node; unknown is no."""
    return meta.status(infrastructure or {}).get("controlPlaneTopology") == SINGLE_REPLICA


def election_times(infrastructure: JSONObject) -> tuple[float, float, float]:
    """Return lease duration, renew deadline and retry period for a cluster.

    >>> election_times({"status": {"controlPlaneTopology": "SingleReplica"}}), election_times({})
    ((270.0, 240.0, 60.0), (137.0, 107.0, 26.0))
    """
    return SINGLE_REPLICA_TIMES if is_single(infrastructure) else TIMES
