"""Selects the verb for a request in a table, by method, path type and subresource.

In: a call on a served resource. Out: the response of the verb, in a form that the client accepts.
"""

from collections.abc import Awaitable, Callable
from typing import Final, Literal, TypeAlias

from kuberuntime.client.transport import Response, StreamResponse
from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.model import apierrors
from localkube.apiserver.requests import representation
from localkube.apiserver.requests.call import Call
from localkube.apiserver.requests.options import WriteOptions
from localkube.apiserver.verbs.backend import Backend
from localkube.apiserver.verbs.reading import get, podlogs, podtarget, responseformat, watch_verb
from localkube.apiserver.verbs.reading import list as listing
from localkube.apiserver.verbs.writing import binding, create, delete, eviction, patch_verb, scale, update

Answer: TypeAlias = Response | StreamResponse
Handler: TypeAlias = Callable[[Backend, Call], Awaitable[Answer]]
Scope: TypeAlias = Literal["collection", "object"]


async def route(backend: Backend, call: Call) -> Answer:
    """Return the response for a call, or raise an error."""
    scope: Scope = "object" if call.name else "collection"
    require_served(call)
    handler = HANDLERS.get((call.method, scope, call.subresource))
    is_unplaced = call.served.resource.namespaced and not call.namespace and call.method != "GET"
    if handler is None or is_unplaced:
        raise apierrors.method_not_allowed()
    if call.subresource not in AS_TEXT:
        representation.negotiate(call.headers.get("accept", ""))  # reject the request before any write
    return await handler(backend, call)


def require_served(call: Call) -> None:
    """Reject subresources that the kind does not have, or that this server does not support."""
    kind, subresource = call.served.kind, call.subresource
    generic = {"status": kind.has_status, "scale": kind.scale is not None}
    if not subresource or generic.get(subresource, False):
        return
    if subresource in OWN_SUBRESOURCES.get(call.served.stored_as, ()):
        return
    if subresource in UNSUPPORTED.get(call.served.stored_as, ()):
        raise apierrors.not_served(f"{call.served.resource.plural}/{subresource}")
    raise apierrors.unknown_resource()


async def _create(backend: Backend, call: Call) -> Answer:
    obj, write_options = await create.create(backend, call)
    return responseformat.object_response(backend, call, 201, obj, _warnings(call, obj, write_options))


async def _get(backend: Backend, call: Call) -> Answer:
    return responseformat.object_response(backend, call, 200, get.get(backend, call))


async def _list(backend: Backend, call: Call) -> Answer:
    if call.flag("watch"):
        form = representation.negotiate(call.headers.get("accept", ""))
        return StreamResponse(200, {"content-type": form.media}, watch_verb.watch(backend, call, form))
    return responseformat.page_response(backend, call, listing.list_page(backend, call))


async def _update(backend: Backend, call: Call) -> Answer:
    code, obj, write_options = await update.update(backend, call)
    return responseformat.object_response(backend, call, code, obj, _warnings(call, obj, write_options))


async def _patch(backend: Backend, call: Call) -> Answer:
    code, obj, write_options = await patch_verb.patch(backend, call)
    return responseformat.object_response(backend, call, code, obj, _warnings(call, obj, write_options))


def _warnings(call: Call, obj: JSONObject, write_options: WriteOptions) -> list[str]:
    """Return the warnings of a write about the request and the object."""
    own = call.served.kind.warnings(obj) if not call.subresource else ()
    return [*write_options.warnings, *own]


async def _delete(backend: Backend, call: Call) -> Answer:
    code, obj, warnings = await delete.delete(backend, call)
    return responseformat.object_response(backend, call, code, obj, warnings)


async def _delete_collection(backend: Backend, call: Call) -> Answer:
    return responseformat.page_response(backend, call, await delete.delete_collection(backend, call))


async def _logs(backend: Backend, call: Call) -> Answer:
    pieces = await podlogs.logs(backend, call)
    return (
        Response(204, {"content-type": "text/plain"}, b"")
        if pieces is None
        else StreamResponse(200, {"content-type": "text/plain"}, pieces)
    )


async def _upgrade_required(backend: Backend, call: Call) -> Answer:
    podtarget.running_pod(backend, call)
    variable = f"KUBECTL_{'PORT_FORWARD' if call.subresource == 'portforward' else 'REMOTE_COMMAND'}_WEBSOCKETS"
    raise apierrors.bad_request(
        "Upgrade request required: the embedded cluster does not support SPDY for this request. Use kubectl 1.31 or "
        f"later, or set {variable}=true"
    )


def _fixed_handler(code: int, verb: Callable[[Backend, Call], Awaitable[JSONObject]]) -> Handler:
    """Return a handler for a verb whose response has a fixed form."""

    async def handle(backend: Backend, call: Call) -> Answer:
        return representation.respond(code, await verb(backend, call))

    return handle


HANDLERS: Final[dict[tuple[str, Scope, str], Handler]] = {
    ("POST", "collection", ""): _create,
    ("GET", "collection", ""): _list,
    ("DELETE", "collection", ""): _delete_collection,
    ("GET", "object", ""): _get,
    ("PUT", "object", ""): _update,
    ("PATCH", "object", ""): _patch,
    ("DELETE", "object", ""): _delete,
    ("GET", "object", "status"): _get,
    ("PUT", "object", "status"): _update,
    ("PATCH", "object", "status"): _patch,
    ("GET", "object", "scale"): _fixed_handler(200, scale.get_scale),
    ("PUT", "object", "scale"): _fixed_handler(200, scale.update_scale),
    ("PATCH", "object", "scale"): _fixed_handler(200, scale.patch_scale),
    ("GET", "object", "resize"): _get,
    ("PUT", "object", "resize"): _update,
    ("PATCH", "object", "resize"): _patch,
    ("PUT", "object", "finalize"): _fixed_handler(200, update.finalize),
    ("POST", "object", "binding"): _fixed_handler(201, binding.bind),
    ("POST", "object", "eviction"): _fixed_handler(201, eviction.evict),
    ("GET", "object", "log"): _logs,
    ("GET", "object", "attach"): _upgrade_required,
    ("POST", "object", "attach"): _upgrade_required,
    ("GET", "object", "exec"): _upgrade_required,
    ("POST", "object", "exec"): _upgrade_required,
    ("GET", "object", "portforward"): _upgrade_required,
    ("POST", "object", "portforward"): _upgrade_required,
}

OWN_SUBRESOURCES: Final = {
    "pods": ("binding", "eviction", "log", "attach", "exec", "portforward", "resize"),
    "namespaces": ("finalize",),
}

AS_TEXT: Final = {"log"}
"""The subresources whose responses are not objects."""

UNSUPPORTED: Final = {
    "pods": ("ephemeralcontainers", "proxy"),
    "nodes": ("proxy",),
    "services": ("proxy",),
    "serviceaccounts": ("token",),
}
"""The Kubernetes subresources that the embedded cluster does not serve."""
