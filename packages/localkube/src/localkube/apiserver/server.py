"""Implements the API server, which handles requests from any transport.

`handle` routes a request to its verb. Errors of verbs and failures of the store become a Kubernetes `Status`. The
transports are `inprocess.py` (same process) and `http.py` (loopback).
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from random import Random
from typing import Final

import structlog
from msgspec import Struct

from kuberuntime.client.transport import Request, Response, StreamResponse
from kuberuntime.clock import Clock
from kuberuntime.objects.resources import NAMESPACES
from localkube.apiserver.admission import admission, namespacelifecycle
from localkube.apiserver.admission.admission import Configurations
from localkube.apiserver.admission.webhook_transport import WebhookTransport
from localkube.apiserver.admission.webhooks import Admission
from localkube.apiserver.definitions import Definitions
from localkube.apiserver.model import apierrors
from localkube.apiserver.model.catalog import Registry
from localkube.apiserver.model.identities import Identities
from localkube.apiserver.model.kind import Kind
from localkube.apiserver.requests import call as calls
from localkube.apiserver.requests import representation
from localkube.apiserver.requests.call import Call
from localkube.apiserver.requests.watch import WatchBroadcaster
from localkube.apiserver.routing import nonresourceurls, resourcemetrics, routes
from localkube.apiserver.storage.eventttl import EventTTL
from localkube.apiserver.storage.store import Store, StoreKey
from localkube.apiserver.storage.storeerrors import StoreError, TooLargeError
from localkube.apiserver.verbs.backend import Backend
from localkube.podaccess import Node

FAULTS_PATH: Final = "/localkube/faults"
"""The path of fault requests (`localkube/faults/`).

It is not part of the Kubernetes API and is always available.
"""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class ServerOptions(Struct, frozen=True, kw_only=True):
    """The options of an API server.

    `random` is seeded in simulations, so that names and UIDs are reproducible. `webhooks` sends reviews (over HTTPS by
    default). `max_pods` limits the total number of pods in all namespaces.
    """

    random: Random | None = None
    webhooks: WebhookTransport | None = None
    max_pods: int | None = None


DEFAULTS: Final = ServerOptions()


class ApiServer:
    """Serves kinds from a store."""

    def __init__(self, store: Store, kinds: Sequence[Kind], clock: Clock, options: ServerOptions = DEFAULTS) -> None:
        identities = Identities(options.random) if options.random else Identities()
        labels = partial(admission.namespace_labels, store)
        webhook_admission = Admission(namespace_labels=labels, uid=identities.uid, transport=options.webhooks)
        self.backend = Backend(
            store=store,
            registry=Registry(kinds),
            broadcaster=WatchBroadcaster(),
            admission=webhook_admission,
            clock=clock,
            max_pods=options.max_pods,
            identities=identities,
        )
        self._definitions = Definitions(self.backend)
        self._configurations = Configurations(store, webhook_admission)
        self._expiry = EventTTL(store, clock)
        self._faults: Callable[[Request, str], Awaitable[Response]] | None = None
        self.is_disconnected = False
        store.subscribe(self.backend.broadcaster.publish)
        for observer in (self._definitions, self._configurations, self._expiry):
            store.subscribe(observer.observe)

    def attach_node(self, node: Node) -> None:
        """Use this node for pod logs, commands and ports."""
        self.backend.node.attach(node)

    def attach_faults(self, serve: Callable[[Request, str], Awaitable[Response]]) -> None:
        """Serve fault requests with this function, which also receives the rest of the path."""
        self._faults = serve

    async def interrupt(self) -> None:
        """Disconnect all clients until `resume` is called. Watches are closed, and requests have no response."""
        self.is_disconnected = True
        self.backend.broadcaster.close_all_watches()

    async def resume(self) -> None:
        """Resume serving clients, after `interrupt`."""
        self.is_disconnected = False

    async def start(self) -> None:
        """Serve the stored CRDs, and create the objects that are required in every cluster."""
        self._definitions.load()
        self._configurations.load()
        self._expiry.load()
        store = self.backend.store
        for name in namespacelifecycle.INITIAL:
            key = StoreKey(NAMESPACES.group_resource, "", name)
            if store.get(key) is None:
                store.create(
                    key, namespacelifecycle.build_initial(name, self.backend.identities.uid(), self.backend.clock.now())
                )
        await store.wait_committed()

    async def handle(self, request: Request, user: str) -> Response | StreamResponse:
        """Return the response to a request."""
        try:
            return await self._respond(request, user)
        except apierrors.StatusError as error:
            return representation.respond_rejection(error)
        except StoreError as error:
            return representation.respond_store_error(error)
        except TooLargeError as error:
            return representation.respond_rejection(apierrors.not_stored(str(error)))
        except Exception as error:  # a failed request must not stop the server
            log.exception("failed to process a request", method=request.method, path=request.path)
            return representation.respond_rejection(apierrors.internal_error(f"{type(error).__name__}: {error}"))

    def call(self, request: Request, user: str) -> Call:
        """Parse a request. Raise an error if the path is outside the API."""
        if not request.path.startswith(("/api/v1/", "/apis/")):
            raise apierrors.unknown_path(request.path)
        return calls.parse(self.backend.registry, request, user)

    def close_watches(self) -> None:
        """Close all current and future watches."""
        self.backend.broadcaster.close()

    async def close(self) -> None:
        """Close all watches and release the store."""
        try:
            self.close_watches()
            await self.backend.admission.close()
        finally:
            self.backend.store.close()

    async def _respond(self, request: Request, user: str) -> Response | StreamResponse:
        if self._faults is not None and request.path.startswith(FAULTS_PATH):
            return await self._faults(request, request.path.removeprefix(FAULTS_PATH))
        if request.path.startswith(resourcemetrics.ROOT):
            return await resourcemetrics.respond(self.backend, request, user)
        response = nonresourceurls.respond(self.backend.registry, request, user)
        return response or await routes.route(self.backend, self.call(request, user))
