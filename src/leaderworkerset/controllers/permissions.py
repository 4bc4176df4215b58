"""What the controllers ask of the API server (contract 12.5, reduced to what is used): roles are generated from this.

No write to nodes, no secrets, no write to the spec or metadata of a LeaderWorkerSet (R-ARC-6). Server-side apply needs
`create` besides `patch` where the object may be absent. `finalizers` is what owner references that block deletion need
where the API server enforces permissions on them.
"""

from typing import Final

from kuberuntime.objects.resources import CONTROLLER_REVISIONS, EVENTS, NODES, PODS, SERVICES, STATEFULSETS
from kuberuntime.permissions import Permission
from leaderworkerset.api.resources import LEADERWORKERSETS

PERMISSIONS: Final = (
    Permission(LEADERWORKERSETS, ("list", "watch")),
    Permission(LEADERWORKERSETS, ("update",), "status"),
    Permission(LEADERWORKERSETS, ("update",), "finalizers"),
    Permission(PODS, ("delete", "list", "watch")),
    Permission(PODS, ("update",), "finalizers"),
    Permission(STATEFULSETS, ("create", "list", "patch", "watch")),
    Permission(SERVICES, ("create", "list", "watch")),
    Permission(CONTROLLER_REVISIONS, ("create", "delete", "list", "patch", "watch")),
    Permission(NODES, ("get",)),
    Permission(EVENTS, ("create", "patch")),
)
