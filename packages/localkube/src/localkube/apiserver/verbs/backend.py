"""Defines the backend of the verbs, which consists of the API server components that `server.py` creates."""

from msgspec import Struct, field

from kuberuntime.clock import Clock
from localkube.apiserver.admission.webhooks import Admission
from localkube.apiserver.model import apierrors
from localkube.apiserver.model.catalog import Registry
from localkube.apiserver.model.identities import Identities
from localkube.apiserver.requests.watch import WatchBroadcaster
from localkube.apiserver.storage.store import Store
from localkube.podaccess import Node


class NodeSlot:
    """A reference to the node that runs the pods."""

    def __init__(self) -> None:
        self._node: Node | None = None

    def attach(self, node: Node) -> None:
        """Set the node."""
        self._node = node

    @property
    def current(self) -> Node:
        """Return the node. Raise an error if there is none."""
        if self._node is None:
            raise apierrors.unavailable("logs, exec and port-forward are not available, because no node is running")
        return self._node


class Backend(Struct, frozen=True, kw_only=True):
    """The components that verbs use, and the pod quota, or None if there is no limit."""

    store: Store
    registry: Registry
    broadcaster: WatchBroadcaster
    admission: Admission
    clock: Clock
    max_pods: int | None = None
    identities: Identities = field(default_factory=Identities)
    node: NodeSlot = field(default_factory=NodeSlot)
