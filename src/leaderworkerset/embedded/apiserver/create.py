"""POST to a collection: store a new object."""

from typing import Final

from leaderworkerset.api import meta
from leaderworkerset.api.meta import JSONObject
from leaderworkerset.embedded.apiserver import body, metadata, namespaces, options, refusal, writing
from leaderworkerset.embedded.apiserver.backend import Backend
from leaderworkerset.embedded.apiserver.call import Call
from leaderworkerset.embedded.apiserver.options import WriteOptions
from leaderworkerset.embedded.apiserver.store import Exists

ATTEMPTS: Final = 8
"""How many generated names are tried."""


async def create(backend: Backend, call: Call) -> tuple[JSONObject, WriteOptions]:
    """Create the object of the body; return it as stored."""
    chosen = options.parse(call, "CreateOptions")
    return await create_object(backend, call, body.read_object(call), chosen), chosen


async def create_object(backend: Backend, call: Call, sent: JSONObject, chosen: WriteOptions) -> JSONObject:
    """Create `sent`, trying further names where the name is generated."""
    if meta.resource_version(sent) not in {"", "0"}:
        raise refusal.Refusal(500, "", "resourceVersion should not be set on objects to be created")
    generated = not meta.name(sent) and bool(meta.metadata(sent).get("generateName"))
    options.check_fields(call.served.kind, sent, chosen)
    for _ in range(ATTEMPTS if generated else 1):
        obj = await _prepared(backend, call, sent, chosen)
        try:
            return await _stored(backend, call, obj, chosen)
        except Exists:
            continue
    resource, name = call.served.resource, meta.name(sent) or str(meta.metadata(sent).get("generateName") or "")
    raise refusal.already_exists(resource, name)


async def _prepared(backend: Backend, call: Call, sent: JSONObject, chosen: WriteOptions) -> JSONObject:
    fresh = metadata.created(
        meta.metadata(sent),
        uid=backend.identities.uid(),
        suffix=backend.identities.suffix(),
        now=backend.clock.now(),
    )
    namespaces.require_open(backend.store, call.served.resource, call.namespace, str(fresh.get("name") or ""))
    change = writing.Change(call, "create", {**sent, "metadata": fresh}, None)
    return await writing.complete(backend, change, chosen)


async def _stored(backend: Backend, call: Call, obj: JSONObject, chosen: WriteOptions) -> JSONObject:
    namespaces.require_open(backend.store, call.served.resource, call.namespace, meta.name(obj))
    key = call.served.key(call.namespace, meta.name(obj))
    if chosen.dry_run:
        if backend.store.get(key) is not None:
            raise Exists(key.name)
        return obj
    stored = backend.store.create(key, call.served.to_store(obj))
    await backend.store.settle()
    return call.served.shown(stored)
