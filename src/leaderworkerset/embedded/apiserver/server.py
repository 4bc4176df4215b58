"""The API server: one request in, one answer out, over any transport.

`handle` routes a request to the verb it asks for. Whatever a verb refuses becomes a Kubernetes `Status`; so does a
store that cannot write. Transports: `inprocess.py` (same process) and `http.py` (loopback).
"""

from collections.abc import Sequence
from random import Random
from typing import Final

from leaderworkerset.api.resources import NAMESPACES
from leaderworkerset.embedded.apiserver import call as calls
from leaderworkerset.embedded.apiserver import (
    create,
    delete,
    get,
    namespaces,
    patch_verb,
    present,
    refusal,
    update,
    watching,
)
from leaderworkerset.embedded.apiserver import list as listing
from leaderworkerset.embedded.apiserver.backend import Backend, Identities
from leaderworkerset.embedded.apiserver.call import Call
from leaderworkerset.embedded.apiserver.kind import Kind
from leaderworkerset.embedded.apiserver.registry import Registry
from leaderworkerset.embedded.apiserver.store import Store, StoreError, StoreKey
from leaderworkerset.embedded.apiserver.watch import WatchHub
from leaderworkerset.kube.clock import Clock
from leaderworkerset.kube.transport import Request, Response, StreamResponse

VERBS: Final = {"POST": "create", "GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class ApiServer:
    """Serves the kinds it is given from a store."""

    def __init__(self, store: Store, kinds: Sequence[Kind], clock: Clock, *, random: Random | None = None) -> None:
        hub = WatchHub()
        store.subscribe(hub.publish)
        identities = Identities(random) if random else Identities()
        self._backend = Backend(store=store, registry=Registry(kinds), hub=hub, clock=clock, identities=identities)

    async def start(self) -> None:
        """Make what every cluster has."""
        for name in namespaces.INITIAL:
            key = StoreKey(NAMESPACES.group_resource, "", name)
            if self._backend.store.get(key) is None:
                initial = namespaces.initial(name, self._backend.identities.uid(), self._backend.clock.now())
                self._backend.store.create(key, initial)
        await self._backend.store.settle()

    async def handle(self, request: Request, user: str) -> Response | StreamResponse:
        """Answer a request."""
        try:
            return await self._answer(request, user)
        except refusal.Refusal as refused:
            return present.respond(refused.code, refused.status())
        except StoreError as error:
            answer = refusal.unavailable(str(error)) if error.transient else refusal.internal_error(str(error))
            return present.respond(answer.code, answer.status())

    def close(self) -> None:
        """End all watches and release the store."""
        self._backend.hub.close()
        self._backend.store.close()

    async def _answer(self, request: Request, user: str) -> Response | StreamResponse:
        if not request.path.startswith(("/api/v1/", "/apis/")):
            raise refusal.unknown_path(request.path)
        call = calls.parse(self._backend.registry, request, user)
        shown = present.negotiate(call.headers.get("accept", ""))
        match call.method, bool(call.name), call.subresource:
            case "GET", False, "" if call.flag("watch"):
                lines = watching.watch(self._backend, call, shown)
                return StreamResponse(200, {"content-type": shown.media}, lines)
            case "GET", False, "":
                page = listing.list_page(self._backend, call)
                return present.respond_bytes(200, listing.encode(call.served, page), shown.media)
            case "GET", True, "" | "status":
                return present.respond(200, get.get(self._backend, call), shown.media)
            case "POST", False, "":
                obj, chosen = await create.create(self._backend, call)
                return present.respond(201, obj, shown.media, chosen.warnings)
            case "PUT", True, "" | "status":
                obj, chosen = await update.update(self._backend, call)
                return present.respond(200, obj, shown.media, chosen.warnings)
            case "PATCH", True, "" | "status":
                code, obj, chosen = await patch_verb.patch(self._backend, call)
                return present.respond(code, obj, shown.media, chosen.warnings)
            case "DELETE", True, "":
                code, obj = await delete.delete(self._backend, call)
                return present.respond(code, obj, shown.media)
        raise _unsupported(call)


def _unsupported(call: Call) -> refusal.Refusal:
    return refusal.method_not_allowed(VERBS.get(call.method, call.method), call.served.resource)
