"""PUT to a namespace's `/finalize`: the namespace controller removes its finalizer, which removes the namespace."""

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.model import refusal
from localkube.apiserver.requests import body
from localkube.apiserver.requests.call import Call
from localkube.apiserver.verbs.backend import Backend
from localkube.apiserver.verbs.writing.update import is_finished, require_preconditions


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
