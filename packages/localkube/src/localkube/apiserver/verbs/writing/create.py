"""Implements POST to a collection, which stores a new object."""

import re
from contextlib import suppress
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from localkube.apiserver.admission import admission, namespacelifecycle
from localkube.apiserver.model import apierrors
from localkube.apiserver.requests import body, options
from localkube.apiserver.requests.call import Call
from localkube.apiserver.requests.options import WriteOptions
from localkube.apiserver.storage.storeerrors import ExistsError
from localkube.apiserver.verbs.backend import Backend
from localkube.apiserver.verbs.writing import metadata, writesteps

VERSION: Final = re.compile(r"0*[1-9][0-9]*", re.ASCII)
"""The pattern of a resourceVersion. In a new object, zero and other strings are ignored."""

ATTEMPTS: Final = 8
"""The maximum number of generated names to try."""


async def create(backend: Backend, call: Call) -> tuple[JSONObject, WriteOptions]:
    """Create the object in the body, and return it as stored."""
    write_options = options.parse(call, "CreateOptions")
    sent = body.read_object(call)
    options.check_fields(call.served.kind, sent, write_options)
    try:
        return await create_object(backend, call, sent, write_options), write_options
    except ExistsError as error:
        name = meta.name(sent) or error.name
        stored = backend.store.get(call.served.key(call.namespace, name))
        deleting = stored is not None and meta.is_deleting(stored)
        raise apierrors.already_exists(call.served.resource, name, deleting=deleting) from error


async def create_object(
    backend: Backend, call: Call, sent: JSONObject, write_options: WriteOptions, *, owned: bool = False
) -> JSONObject:
    """Create an object. If its generated name exists, retry with a new name.

    If `owned` is set, managedFields are already set. Raises `ExistsError`.
    """
    if VERSION.fullmatch(meta.resource_version(sent)):
        raise apierrors.StatusError(500, "", "resourceVersion should not be set on objects to be created")
    generated = not meta.name(sent) and bool(meta.metadata(sent).get("generateName"))
    for _ in range(ATTEMPTS - 1 if generated else 0):
        with suppress(ExistsError):
            return await _attempt(backend, call, sent, write_options, owned=owned)
    return await _attempt(backend, call, sent, write_options, owned=owned)


async def _attempt(
    backend: Backend, call: Call, sent: JSONObject, write_options: WriteOptions, *, owned: bool
) -> JSONObject:
    resource, store = call.served.resource, backend.store
    fresh = metadata.new_metadata(meta.metadata(sent), backend.identities, backend.clock.now())
    name, before = str(fresh.get("name") or ""), store.revision
    namespacelifecycle.require_active_namespace(store, resource, call.namespace, name)
    change = writesteps.Write(call, "create", {**sent, "metadata": fresh}, None, has_managed_fields=owned)
    obj = await writesteps.complete_write(backend, change, write_options)
    if store.revision != before:  # the object was changed while webhooks were called
        namespacelifecycle.require_active_namespace(store, resource, call.namespace, name)
    if resource == PODS and backend.max_pods is not None:
        admission.require_quota(store, meta.name(obj), backend.max_pods)
    key = call.served.key(call.namespace, meta.name(obj))
    if write_options.dry_run:
        if store.get(key) is not None:
            raise ExistsError(key.name)
        return obj
    stored = store.create(key, call.served.to_store(obj))
    await store.wait_committed()
    return call.served.from_store(stored)
