"""The permissions that controllers need beside filling their caches (contract 12.5, reduced to what is used).

They write no nodes and read no secrets. The spec of a LeaderWorkerSet is written only if a DisaggregatedSet owns it
(R-ARC-6, R-DS-19), of its metadata only the annotation with the counts of restarts (N-KEY-3). Server-side apply needs `create` besides `patch` if the object may be absent. `finalizers`
is needed for owner references that block deletion, if the API server enforces permissions on them.
"""

from typing import Final

from kuberuntime.objects.resources import (
    CONTROLLER_REVISIONS,
    DEPLOYMENTS,
    EVENTS,
    NAMESPACES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    SERVICES,
    STATEFULSETS,
)
from kuberuntime.policyrules import Permission
from leaderworkerset.api.resources import DISAGGREGATED_SETS, LEADERWORKERSETS, ROLE_SCALERS

LEADERWORKERSET: Final = (
    Permission(LEADERWORKERSETS, ("delete", "patch")),
    Permission(LEADERWORKERSETS, ("update",), "status"),
    Permission(LEADERWORKERSETS, ("update",), "finalizers"),
    Permission(PODS, ("delete", "patch")),
    Permission(NAMESPACES, ("get",)),
    Permission(STATEFULSETS, ("create", "patch")),
    Permission(DEPLOYMENTS, ("create", "patch")),
    Permission(SERVICES, ("create",)),
    Permission(CONTROLLER_REVISIONS, ("create", "delete", "list", "patch")),
)

POD: Final = (
    Permission(LEADERWORKERSETS, ("patch",)),
    Permission(LEADERWORKERSETS, ("update",), "finalizers"),
    Permission(PODS, ("delete", "patch")),
    Permission(PODS, ("patch",), "status"),
    Permission(PODS, ("update",), "finalizers"),
    Permission(STATEFULSETS, ("create", "delete", "patch")),
    Permission(SERVICES, ("create",)),
    Permission(CONTROLLER_REVISIONS, ("create", "delete", "patch")),
    Permission(NODES, ("get",)),
)

RESIZE: Final = (Permission(PODS, ("patch",), "resize"),)
"""What updates in place need where CPU and memory change (docs/how-to/update-in-place.md)."""

GANG_GATE: Final = (Permission(PODS, ("patch",)),)

DISRUPTION: Final = (
    Permission(POD_DISRUPTION_BUDGETS, ("create", "delete", "list", "patch")),
    Permission(PODS, ("patch",)),
)

ALL_OF_DISRUPTION: Final = (
    Permission(POD_DISRUPTION_BUDGETS, ("create", "delete", "list", "patch", "watch")),
    Permission(NODES, ("list", "watch")),
)
"""The same with what fills its caches: what a manager with disruption budgets needs beside what others need."""

DISAGGREGATED_SET: Final = (
    Permission(DISAGGREGATED_SETS, ("update",), "status"),
    Permission(DISAGGREGATED_SETS, ("update",), "finalizers"),
    Permission(LEADERWORKERSETS, ("create", "delete", "patch")),
    Permission(SERVICES, ("create", "delete")),
    Permission(ROLE_SCALERS, ("create", "delete")),
    Permission(ROLE_SCALERS, ("patch",), "status"),
)

RECORD_EVENTS: Final = (Permission(EVENTS, ("create", "patch")),)
"""What every process with controllers needs."""

MAINTENANCE: Final = (Permission(NODES, ("list", "watch")),)
"""What moving groups off closed nodes needs in addition: filling the cache of nodes."""
