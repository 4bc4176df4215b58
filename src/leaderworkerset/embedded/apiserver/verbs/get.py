"""GET of one object."""

from leaderworkerset.api.meta import JSONObject
from leaderworkerset.embedded.apiserver import refusal
from leaderworkerset.embedded.apiserver.backend import Backend
from leaderworkerset.embedded.apiserver.call import Call


def get(backend: Backend, call: Call) -> JSONObject:
    """Return the object as it is committed."""
    backend.store.flush()
    stored = backend.store.get(call.key)
    if stored is None:
        raise refusal.not_found(call.served.resource, call.name)
    return call.served.shown(stored)
