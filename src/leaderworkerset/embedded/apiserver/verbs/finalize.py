"""PUT to a namespace's `/finalize`: the namespace controller takes its finalizer off, which removes the namespace."""

from leaderworkerset.api import meta
from leaderworkerset.api.meta import JSONObject
from leaderworkerset.embedded.apiserver import refusal
from leaderworkerset.embedded.apiserver.backend import Backend
from leaderworkerset.embedded.apiserver.call import Call
from leaderworkerset.embedded.apiserver.forms import body
from leaderworkerset.embedded.apiserver.verbs.update import is_finished, require_preconditions


async def finalize(backend: Backend, call: Call) -> JSONObject:
    """Replace the finalizers in the spec of a namespace."""
    sent = body.normalized(call, "Namespace", body.read_object(call))
    body.require_name(call, sent)
    stored = backend.store.get(call.key)
    if stored is None:
        raise refusal.not_found(call.served.resource, call.name)
    require_preconditions(call, sent, stored)
    spec = {**meta.spec(stored), "finalizers": meta.spec(sent).get("finalizers") or []}
    wanted = {**stored, "spec": spec}
    if is_finished(wanted):
        backend.store.delete(call.key, stored)
    else:
        wanted = backend.store.update(call.key, wanted, stored)
    await backend.store.settle()
    return wanted
