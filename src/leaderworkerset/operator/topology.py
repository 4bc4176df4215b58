"""How long the operator's lease holds, which depends on the control plane of the cluster (R-OP-12)."""

from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource

INFRASTRUCTURES: Final = Resource("config.openshift.io", "v1", "infrastructures", "Infrastructure", namespaced=False)
SINGLE_REPLICA: Final = "SingleReplica"
TIMES: Final = (137.0, 107.0, 26.0)
SINGLE_REPLICA_TIMES: Final = (270.0, 240.0, 60.0)
"""Lease, renewal, retry in seconds: with a single control plane node, longer than that takes to restart."""


def election_times(infrastructure: JSONObject) -> tuple[float, float, float]:
    """Return lease duration, renew deadline and retry period for a cluster.

    >>> election_times({"status": {"controlPlaneTopology": "SingleReplica"}}), election_times({})
    ((270.0, 240.0, 60.0), (137.0, 107.0, 26.0))
    """
    topology = meta.status(infrastructure).get("controlPlaneTopology")
    return SINGLE_REPLICA_TIMES if topology == SINGLE_REPLICA else TIMES
