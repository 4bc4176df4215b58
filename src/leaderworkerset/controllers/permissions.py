"""What the controllers ask of the API server beside filling their caches (contract 12.5, reduced to what is used).

No write to nodes, no secrets, no write to the spec or metadata of a LeaderWorkerSet (R-ARC-6). Server-side apply needs
`create` besides `patch` where the object may be absent. `finalizers` is what owner references that block deletion need
where the API server enforces permissions on them.
"""

from typing import Final

from kuberuntime.objects.resources import CONTROLLER_REVISIONS, EVENTS, NODES, PODS, SERVICES, STATEFULSETS
from kuberuntime.permissions import Permission
from leaderworkerset.api.resources import LEADERWORKERSETS

LEADERWORKERSET: Final = (
    Permission(LEADERWORKERSETS, ("update",), "status"),
    Permission(LEADERWORKERSETS, ("update",), "finalizers"),
    Permission(PODS, ("delete",)),
    Permission(STATEFULSETS, ("create", "patch")),
    Permission(SERVICES, ("create",)),
    Permission(CONTROLLER_REVISIONS, ("create", "delete")),
)

POD: Final = (
    Permission(LEADERWORKERSETS, ("update",), "finalizers"),
    Permission(PODS, ("delete",)),
    Permission(PODS, ("update",), "finalizers"),
    Permission(STATEFULSETS, ("create",)),
    Permission(SERVICES, ("create",)),
    Permission(CONTROLLER_REVISIONS, ("create", "patch")),
    Permission(NODES, ("get",)),
)

RECORD_EVENTS: Final = (Permission(EVENTS, ("create", "patch")),)
"""What a process with controllers asks for, whichever they are."""
