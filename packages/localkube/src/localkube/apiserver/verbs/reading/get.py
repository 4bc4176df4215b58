"""Implements GET of one object."""

from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.model import apierrors
from localkube.apiserver.requests.call import Call
from localkube.apiserver.verbs.backend import Backend


def get(backend: Backend, call: Call) -> JSONObject:
    """Return the committed object."""
    backend.store.flush()
    return call.served.from_store(read_stored(backend, call))


def read_stored(backend: Backend, call: Call) -> JSONObject:
    """Return the object as stored in the current transaction."""
    obj = backend.store.get(call.key)
    if obj is None:
        raise apierrors.not_found(call.served.resource, call.name)
    return obj
