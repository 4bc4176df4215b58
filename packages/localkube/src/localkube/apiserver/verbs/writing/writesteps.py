"""Implements the steps of a write between request and store: defaults, validation, field ownership and admission.

In: a `Write` with the call, the operation, the desired and the stored object. Out: the object to store, or an error.
"""

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from localkube.apiserver.admission import admission, priorities
from localkube.apiserver.model import apierrors
from localkube.apiserver.model.kind import Operation, UndecodableError
from localkube.apiserver.patch import ownership
from localkube.apiserver.patch.ownership import Writer, WriteType
from localkube.apiserver.requests.call import Call
from localkube.apiserver.requests.options import WriteOptions
from localkube.apiserver.verbs.backend import Backend
from localkube.apiserver.verbs.writing import metadata


class Write(Struct, frozen=True):
    """An object to write. `old` is the stored object, or None on create. With `has_managed_fields`, managedFields are set."""

    call: Call
    operation: Operation
    new: JSONObject
    old: JSONObject | None
    has_managed_fields: bool = False


async def complete_write(backend: Backend, change: Write, write_options: WriteOptions) -> JSONObject:
    """Return the object to store, or the stored object itself if the write does not change it."""
    call, kind = change.call, change.call.served.kind
    obj = prepare(change)
    if change.operation == "create" and call.served.resource == PODS:
        obj = priorities.resolve_priority(backend.store, obj)
    if not change.has_managed_fields:
        anew = meta.metadata(change.new).get("managedFields") in ([], [{}])  # a client removes all entries
        obj = ownership.track_fields(
            kind, change.old, obj, build_writer(backend, call, write_options, "Update"), anew=anew
        )
    attempt = admission.build_attempt(call, change.old, obj, write_options)
    if is_admitted(call):
        obj = await backend.admission.mutate(attempt) or obj  # changes by webhooks do not affect ownership
    validate(change, obj)
    if is_admitted(call):
        await backend.admission.validate(replace(attempt, object=obj))
    return obj if change.old is None else ownership.drop_unchanged_times(change.old, obj)


def is_admitted(call: Call) -> bool:
    """Return whether webhooks are called. They are not called for `/scale`, whose object has a different kind."""
    return call.subresource != "scale"


def build_writer(backend: Backend, call: Call, write_options: WriteOptions, operation: WriteType) -> Writer:
    """Return the manager and operation of the write for managedFields."""
    version, now = call.served.resource.api_version, timestamps.render(backend.clock.now())
    return Writer(write_options.manager, operation, version, now, call.subresource)


def prepare(change: Write) -> JSONObject:
    """Set defaults, and drop fields that the operation must not write."""
    try:
        return change.call.served.kind.prepare(change.operation, change.new, change.old)
    except UndecodableError as error:
        raise apierrors.undecodable(change.call.method, change.call.body, str(error)) from error


def validate(change: Write, obj: JSONObject) -> None:
    """Raise an error if the object has invalid fields."""
    errors = list(change.call.served.kind.validate(change.operation, obj, change.old))
    if change.old is not None:
        errors = [*metadata.update_errors(meta.metadata(obj), meta.metadata(change.old)), *errors]
    if errors:
        resource = change.call.served.resource
        raise apierrors.invalid(resource.group, resource.kind, meta.name(obj), errors)
