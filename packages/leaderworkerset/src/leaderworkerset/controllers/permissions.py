"""Defines the controller permissions in addition to the permissions for caches (contract 12.5).

Controllers do not write nodes or read Secrets. They write the spec of a LeaderWorkerSet only if a DisaggregatedSet owns
it (R-ARC-6, R-DS-19). In its metadata, they write only the annotation with the restart counts (N-KEY-3). Server-side
apply needs `create` in addition to `patch` if the object may be absent. `finalizers` is needed for owner references
that block deletion, if the API server enforces permissions on them.
"""

from typing import Final

from kuberuntime.objects import resources
from kuberuntime.policyrules import Permission
from leaderworkerset.api.resources import DISAGGREGATED_SETS, LEADERWORKERSETS, ROLE_SCALERS
from leaderworkerset.core.admission import podpolicy

LEADERWORKERSET: Final = (
    Permission(LEADERWORKERSETS, ("delete", "patch")),
    Permission(LEADERWORKERSETS, ("update",), "status"),
    Permission(LEADERWORKERSETS, ("update",), "finalizers"),
    Permission(resources.PODS, ("delete", "patch")),
    Permission(resources.NAMESPACES, ("get",)),
    Permission(resources.STATEFULSETS, ("create", "patch")),
    Permission(resources.STATEFULSETS, ("patch",), "status"),
    Permission(resources.DEPLOYMENTS, ("create", "patch")),
    Permission(resources.SERVICES, ("create", "patch")),
    Permission(resources.CONTROLLER_REVISIONS, ("create", "delete", "list", "patch")),
)

POD: Final = (
    Permission(LEADERWORKERSETS, ("patch",)),
    Permission(LEADERWORKERSETS, ("update",), "finalizers"),
    Permission(resources.PODS, ("delete", "patch")),
    Permission(resources.PODS, ("patch",), "status"),
    Permission(resources.PODS, ("update",), "finalizers"),
    Permission(resources.STATEFULSETS, ("create", "delete", "patch")),
    Permission(resources.SERVICES, ("create",)),
    Permission(resources.CONTROLLER_REVISIONS, ("create", "delete", "patch")),
    Permission(resources.NODES, ("get",)),
)

RESIZE: Final = (Permission(resources.PODS, ("patch",), "resize"),)
"""The permissions for in-place updates of CPU and memory (docs/how-to/in-place.md)."""

GANG_GATE: Final = (Permission(resources.PODS, ("patch",)),)

DISRUPTION: Final = (
    Permission(resources.POD_DISRUPTION_BUDGETS, ("create", "delete", "list", "patch")),
    Permission(resources.PODS, ("patch",)),
)

ALL_OF_DISRUPTION: Final = (
    Permission(resources.POD_DISRUPTION_BUDGETS, ("create", "delete", "list", "patch", "watch")),
    Permission(resources.NODES, ("list", "watch")),
)
"""The additional manager permissions for disruption budgets, including their caches."""

POD_POLICIES: Final = tuple(
    Permission(kind, ("create", "patch", "update"), names=(podpolicy.NAME,)) for kind in podpolicy.KINDS
)
"""The permissions for the pod admission policy. Roles can restrict only server-side apply to a name, not `create`."""

ALL_OF_POD_POLICIES: Final = tuple(
    Permission(kind, ("create", "list", "patch", "update", "watch"), names=(podpolicy.NAME,))
    for kind in podpolicy.KINDS
)
"""The additional manager permissions if the policy is enabled, including the caches."""

REMOVE_POD_POLICIES: Final = tuple(
    Permission(kind, ("delete", "get"), names=(podpolicy.NAME,)) for kind in podpolicy.KINDS
)
"""The permissions of all managers. If the policy is not enabled, the manager removes an earlier policy."""

DISAGGREGATED_SET: Final = (
    Permission(DISAGGREGATED_SETS, ("update",), "status"),
    Permission(DISAGGREGATED_SETS, ("update",), "finalizers"),
    Permission(LEADERWORKERSETS, ("create", "delete", "patch")),
    Permission(resources.SERVICES, ("create", "delete", "patch")),
    Permission(ROLE_SCALERS, ("create", "delete")),
    Permission(ROLE_SCALERS, ("patch",), "status"),
)

RECORD_EVENTS: Final = (Permission(resources.EVENTS, ("create", "patch")),)
"""The permissions of all processes with controllers."""

MAINTENANCE: Final = (Permission(resources.NODES, ("list", "watch")),)
"""The additional permissions to move groups from closed nodes, including the node cache."""
