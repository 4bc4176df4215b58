"""Implements PUT of an object or its `/status`. PUT and PATCH share the code that edits stored objects.

In: a call, and a function from the stored object to the desired object. Out: the object as stored afterwards. After a
concurrent write, a desired object with a resourceVersion is rejected. Otherwise the function runs again on the newer
object.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from kuberuntime.objects import meta
from kuberuntime.objects.field import invalid
from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.model import apierrors
from localkube.apiserver.model.kind import Operation
from localkube.apiserver.requests import body, options
from localkube.apiserver.requests.call import Call
from localkube.apiserver.requests.options import WriteOptions
from localkube.apiserver.storage.storeerrors import StaleError
from localkube.apiserver.verbs.backend import Backend
from localkube.apiserver.verbs.reading import get
from localkube.apiserver.verbs.writing import metadata, writesteps
from localkube.apiserver.verbs.writing.create import create_object

ATTEMPTS: Final = 8
"""The maximum number of attempts for a change without a resourceVersion, if there are concurrent writes."""

CONDITIONAL: Final = {
    "leases.coordination.k8s.io",
    "serviceaccounts",
    "poddisruptionbudgets.policy",
    "customresourcedefinitions.apiextensions.k8s.io",
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
}
"""The built-in resources whose update requires a resourceVersion, as for all custom resources."""

CREATED_BY_PUT: Final = {"leases.coordination.k8s.io", "endpoints", "events", "services"}
"""The resources that a PUT creates if they do not exist."""


class Edit(Struct, frozen=True):
    """An edit, with the function that returns the desired object for the stored object.

    If `has_managed_fields` is set, managedFields are already set. If `is_conditional` is set, the object must have a resourceVersion.
    """

    operation: Operation
    apply: Callable[[JSONObject], JSONObject]
    has_managed_fields: bool = False
    is_conditional: bool = False


async def update(backend: Backend, call: Call) -> tuple[int, JSONObject, WriteOptions]:
    """Replace the object by the body. Return the code and object of the response."""
    write_options = options.parse(call, "UpdateOptions")
    sent = body.read_object(call)
    body.require_name(call, sent)
    options.check_fields(call.served.kind, sent, write_options)
    exists = backend.store.get(call.key) is not None
    if not exists and call.served.stored_as in CREATED_BY_PUT and not call.subresource:
        return 201, await create_object(backend, call, sent, write_options), write_options
    edit = Edit(
        write_operation(call),
        lambda _: sent,
        is_conditional=call.served.is_custom or call.served.stored_as in CONDITIONAL,
    )
    return 200, await edit_object(backend, call, edit, write_options), write_options


def write_operation(call: Call) -> Operation:
    """Return the operation for a write to the call's subresource."""
    match call.subresource:
        case "status" | "resize" as operation:
            return operation
        case _:
            return "update"


async def edit_object(backend: Backend, call: Call, edit: Edit, write_options: WriteOptions) -> JSONObject:
    """Perform the edit, and return the stored object."""
    for _ in range(ATTEMPTS):
        stored = get.read_stored(backend, call)
        old = call.served.from_store(stored)
        desired = edit.apply(old)
        require_preconditions(call, desired, old)
        if edit.is_conditional and meta.resource_version(desired) in {"", "0"}:
            error = invalid("metadata.resourceVersion", 0, "must be specified for an update")
            resource = call.served.resource
            raise apierrors.invalid(resource.group, resource.plural, call.name, [error])
        placed = {**desired, "metadata": metadata.updated_metadata(meta.metadata(desired), meta.metadata(old))}
        change = writesteps.Write(call, edit.operation, placed, old, has_managed_fields=edit.has_managed_fields)
        new = await writesteps.complete_write(backend, change, write_options)
        if write_options.dry_run or new == old:
            await backend.store.wait_committed()
            return new
        try:
            return await _store(backend, call, new, stored)
        except StaleError:
            continue
    raise apierrors.stale(call.served.resource, call.name)


async def _store(backend: Backend, call: Call, new: JSONObject, stored: JSONObject) -> JSONObject:
    if is_finished(new):
        backend.store.delete(call.key, stored)
        await backend.store.wait_committed()
        return new
    written = backend.store.update(call.key, call.served.to_store(new), stored)
    await backend.store.wait_committed()
    return call.served.from_store(written)


def is_finished(obj: JSONObject) -> bool:
    """Return whether a terminating object can be removed, because no finalizer or grace period remains."""
    metadata_ = meta.metadata(obj)
    waits = metadata_.get("finalizers") or metadata_.get("deletionGracePeriodSeconds")
    spec_finalizers = obj.get("kind") == "Namespace" and meta.spec(obj).get("finalizers")
    return meta.is_deleting(obj) and not waits and not spec_finalizers


def require_preconditions(call: Call, new: JSONObject, old: JSONObject) -> None:
    """Raise an error if an edit's preconditions specify a different object or version."""
    resource = call.served.resource
    uid, version = meta.uid(new), meta.resource_version(new)
    if uid and uid != meta.uid(old):
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {meta.uid(old)}"
        raise apierrors.conflict(resource, call.name, why)
    if version not in {"", "0"} and version != meta.resource_version(old):
        raise apierrors.stale(resource, call.name)


async def finalize(backend: Backend, call: Call) -> JSONObject:
    """Replace the finalizers in the spec of a namespace. If none remains, remove the namespace."""
    sent = body.normalize(call, "Namespace", body.read_object(call))
    body.require_name(call, sent)
    stored = get.read_stored(backend, call)
    require_preconditions(call, sent, stored)
    spec = {**meta.spec(stored), "finalizers": meta.spec(sent).get("finalizers") or []}
    namespace = {**stored, "spec": spec}
    if is_finished(namespace):
        backend.store.delete(call.key, stored)
    else:
        namespace = backend.store.update(call.key, namespace, stored)
    await backend.store.wait_committed()
    return namespace
