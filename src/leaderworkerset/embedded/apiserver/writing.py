"""What every write goes through between the request and the store: defaults, validation, field ownership, admission.

In: a `Change`: the call, the operation, the object wanted and the one stored. Out: the object to store, or a refusal.
"""

from dataclasses import dataclass

from leaderworkerset.api import meta
from leaderworkerset.api.meta import JSONObject
from leaderworkerset.embedded.apiserver import metadata, refusal
from leaderworkerset.embedded.apiserver.backend import Backend
from leaderworkerset.embedded.apiserver.call import Call
from leaderworkerset.embedded.apiserver.kind import Operation, UndecodableError
from leaderworkerset.embedded.apiserver.options import WriteOptions


@dataclass(frozen=True, slots=True)
class Change:
    """One object about to be written: `old` is what is stored, None on create."""

    call: Call
    operation: Operation
    new: JSONObject
    old: JSONObject | None


async def complete(backend: Backend, change: Change, chosen: WriteOptions) -> JSONObject:
    """Return the object to store."""
    prepared = prepare(change)
    validate(change, prepared)
    return prepared


def prepare(change: Change) -> JSONObject:
    """Fill defaults and drop what the operation may not write."""
    try:
        return change.call.served.kind.prepare(change.operation, change.new, change.old)
    except UndecodableError as error:
        raise refusal.bad_request(str(error)) from error


def validate(change: Change, obj: JSONObject) -> None:
    """Refuse an object with faulty fields."""
    faults = list(change.call.served.kind.validate(change.operation, obj, change.old))
    if change.old is not None:
        faults = [*metadata.faults_of_update(meta.metadata(obj), meta.metadata(change.old)), *faults]
    if faults:
        resource = change.call.served.resource
        raise refusal.invalid(resource.group, resource.kind, meta.name(obj), faults)
