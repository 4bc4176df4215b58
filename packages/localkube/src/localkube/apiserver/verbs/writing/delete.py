"""Implements DELETE of an object, immediately, after its grace period, or after the removal of its finalizers.

```
finalizers or a grace period left   mark with deletionTimestamp; removed by a later write
pod without grace left              mark, then remove: watchers see MODIFIED, DELETED
otherwise                           remove
```

The finalizers `orphan` and `foregroundDeletion` are added according to the propagation policy. The garbage collector
removes them when it has processed the dependents.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Annotated, Final

import msgspec
from msgspec.structs import replace

from kuberuntime.objects import meta, podstate, resources, timestamps
from kuberuntime.objects.field import FieldError, invalid, not_supported
from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.admission import admission, namespacelifecycle
from localkube.apiserver.model import apierrors
from localkube.apiserver.model.apierrors import StatusError
from localkube.apiserver.requests import body, filters
from localkube.apiserver.requests.call import Call
from localkube.apiserver.requests.filters import ObjectSelector
from localkube.apiserver.requests.options import WriteOptions
from localkube.apiserver.storage.encoding import encode
from localkube.apiserver.storage.store import StoreKey
from localkube.apiserver.verbs.backend import Backend
from localkube.apiserver.verbs.reading import get
from localkube.apiserver.verbs.reading.list import Page
from localkube.apiserver.verbs.writing.update import is_finished

NANOSECONDS: Final = 10**9
NANOSECONDS_END: Final = 2**63

ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"
FINALIZER_OF: Final[dict[str, str | None]] = {"Orphan": ORPHAN, "Foreground": FOREGROUND, "Background": None}

RETURNS_OBJECT: Final = {
    "pods", "services", "persistentvolumeclaims", "persistentvolumes", "serviceaccounts", "podtemplates",
    "resourcequotas", "storageclasses.storage.k8s.io",
}  # fmt: skip
"""The resources whose deletion returns the object instead of a Status."""


class DeleteOptions(msgspec.Struct, frozen=True):
    """The options of a deletion. Unspecified options are None."""

    grace_period: int | None = None
    propagation: str | None = None
    orphan_dependents: bool | None = None
    uid: str | None = None
    resource_version: str | None = None
    dry_run: bool = False


class Preconditions(msgspec.Struct, frozen=True, rename="camel"):
    """The preconditions of a deletion."""

    uid: str | None = None
    resource_version: str | None = None


class DeleteOptionsBody(msgspec.Struct, frozen=True, rename="camel"):
    """The body of a deletion."""

    kind: str = "DeleteOptions"
    grace: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | None = msgspec.field(
        name="gracePeriodSeconds", default=None
    )
    propagation_policy: str | None = None
    orphan_dependents: bool | None = None
    preconditions: Preconditions | None = None
    dry_run: list[str] | None = None


class Outcome(msgspec.Struct, frozen=True):
    """The result of a deletion: the object or its last state, whether it was removed, and webhook warnings."""

    object: JSONObject
    is_removed: bool
    warnings: Sequence[str] = ()


async def delete(backend: Backend, call: Call) -> tuple[int, JSONObject, Sequence[str]]:
    """Delete the object. Return the code, body and warnings of the response."""
    delete_options = read_options(call)
    outcome = await delete_object(backend, call, delete_options)
    code = 202 if not outcome.is_removed and delete_options.orphan_dependents is False else 200
    if outcome.is_removed and call.served.stored_as not in RETURNS_OBJECT:
        return code, success_status(call, outcome.object), outcome.warnings
    return code, outcome.object, outcome.warnings


async def delete_object(backend: Backend, call: Call, delete_options: DeleteOptions) -> Outcome:
    """Mark or remove one object according to the options."""
    namespacelifecycle.require_deletable(call.served.resource, call.name)
    stored = get.read_stored(backend, call)
    options = WriteOptions(dry_run=delete_options.dry_run)
    attempt = admission.build_attempt(call, call.served.from_store(stored), None, options)
    await backend.admission.mutate(attempt)
    await backend.admission.validate(attempt)
    outcome = delete_now(backend, call, delete_options)
    await backend.store.wait_committed()
    return replace(outcome, object=call.served.from_store(outcome.object), warnings=options.warnings)


def delete_now(backend: Backend, call: Call, delete_options: DeleteOptions) -> Outcome:
    """Mark or remove one object in the current transaction."""
    stored = get.read_stored(backend, call)
    _require_preconditions(call, stored, delete_options)
    marked = mark_deleted(call, stored, delete_options, backend.clock.now())
    return _write(backend, call, stored, marked, dry_run=delete_options.dry_run)


def _write(backend: Backend, call: Call, stored: JSONObject, marked: JSONObject, *, dry_run: bool) -> Outcome:
    finished = is_finished(marked)
    if dry_run:
        return Outcome(stored if finished and not _is_graceful(call) else marked, finished)
    if finished and not _is_graceful(call):
        return Outcome(backend.store.delete(call.key, stored), is_removed=True)
    current = stored if marked == stored else backend.store.update(call.key, marked, stored)
    if finished:
        return Outcome(backend.store.delete(call.key, current), is_removed=True)
    return Outcome(current, is_removed=False)


def mark_deleted(call: Call, obj: JSONObject, delete_options: DeleteOptions, now: datetime) -> JSONObject:
    """Mark the object as deleted. If the result `is_finished`, the caller must remove it."""
    metadata = meta.metadata(obj)
    if meta.is_deleting(obj) and metadata.get("deletionGracePeriodSeconds"):
        return _shorten_grace_period(obj, delete_options)
    finalizers = _finalizers(metadata.get("finalizers") or [], delete_options)
    grace = _grace_period(obj, delete_options) if _is_graceful(call) and not meta.is_deleting(obj) else 0
    kept = {name: value for name, value in metadata.items() if name != "finalizers"}
    marks: JSONObject = {"finalizers": finalizers} if finalizers else {}
    marks["deletionGracePeriodSeconds"] = grace
    if not meta.is_deleting(obj):
        marks["deletionTimestamp"] = timestamps.render(_add_seconds(now, grace))
        if "generation" in metadata:
            marks["generation"] = metadata["generation"] + 1
    marked = {**obj, "metadata": {**kept, **marks}}
    return namespacelifecycle.mark_terminating(marked) if call.served.resource == resources.NAMESPACES else marked


def _shorten_grace_period(obj: JSONObject, delete_options: DeleteOptions) -> JSONObject:
    """Shorten the grace period of a terminating pod, if a shorter one is requested."""
    metadata = meta.metadata(obj)
    before = metadata["deletionGracePeriodSeconds"]
    if delete_options.grace_period is None or delete_options.grace_period >= before:
        return obj
    moment = _add_seconds(timestamps.parse(metadata["deletionTimestamp"]), delete_options.grace_period - before)
    marks = {"deletionTimestamp": timestamps.render(moment), "deletionGracePeriodSeconds": delete_options.grace_period}
    return {**obj, "metadata": {**metadata, **marks}}


def _add_seconds(moment: datetime, seconds: int) -> datetime:
    """Add seconds to a time. A duration of more than 64 bits of nanoseconds overflows, as in Go."""
    nanoseconds = (seconds * NANOSECONDS + NANOSECONDS_END) % (2 * NANOSECONDS_END) - NANOSECONDS_END
    return moment + timedelta(microseconds=nanoseconds // 1000)


def _finalizers(present: list[str], delete_options: DeleteOptions) -> list[str]:
    """Return the finalizers. The propagation policy adds or removes the garbage collector's finalizers."""
    if delete_options.orphan_dependents is None and delete_options.propagation is None:
        return present
    others = [name for name in present if name not in {ORPHAN, FOREGROUND}]
    finalizer = ORPHAN if delete_options.orphan_dependents else FINALIZER_OF.get(delete_options.propagation or "")
    return [*others, finalizer] if finalizer else others


def _is_graceful(call: Call) -> bool:
    return call.served.stored_as == resources.PODS.group_resource


def _grace_period(pod: JSONObject, delete_options: DeleteOptions) -> int:
    """Return the grace period of a pod in seconds, or 0 if no node runs the pod or it has terminated."""
    if not meta.spec(pod).get("nodeName") or podstate.has_ended(pod):
        return 0
    grace = delete_options.grace_period
    period = int(meta.spec(pod).get("terminationGracePeriodSeconds") or 0) if grace is None else grace
    return period if period >= 0 else 1


def _require_preconditions(call: Call, stored: JSONObject, delete_options: DeleteOptions) -> None:
    uid, version = meta.uid(stored), meta.resource_version(stored)
    if delete_options.uid is not None and delete_options.uid != uid:
        why = (
            f"the UID in the precondition ({delete_options.uid}) does not match the UID in record ({uid})."
            " The object might have been deleted and then recreated"
        )
        raise apierrors.conflict(replace(call.served.resource, plural=call.served.resource.kind), call.name, why)
    if delete_options.resource_version is not None and delete_options.resource_version != version:
        why = (
            f"the ResourceVersion in the precondition ({delete_options.resource_version}) does not match the"
            f" ResourceVersion in record ({version}). The object might have been modified"
        )
        raise apierrors.conflict(replace(call.served.resource, plural=call.served.resource.kind), call.name, why)


def read_options(call: Call) -> DeleteOptions:
    """Parse the options of a deletion. Options in the body override options in the query."""
    sent = body.parse(call.body, body.media_type(call.headers)) if call.body else {}
    try:
        sent_options = msgspec.convert(sent, DeleteOptionsBody)
    except msgspec.ValidationError as error:
        raise apierrors.bad_request(f"the body of a deletion must be DeleteOptions: {error}") from error
    if sent_options.kind != "DeleteOptions":
        raise apierrors.bad_request(
            f'no kind "{sent_options.kind}" is registered for deletions: the body must be DeleteOptions'
        )
    query, conditions = call.query, sent_options.preconditions or Preconditions()
    in_query = call.flag("orphanDependents") if "orphanDependents" in query else None
    delete_options = DeleteOptions(
        grace_period=call.number("gracePeriodSeconds") if sent_options.grace is None else sent_options.grace,
        propagation=sent_options.propagation_policy
        if sent_options.propagation_policy is not None
        else query.get("propagationPolicy"),
        orphan_dependents=in_query if sent_options.orphan_dependents is None else sent_options.orphan_dependents,
        uid=conditions.uid,
        resource_version=conditions.resource_version,
        dry_run=bool(sent_options.dry_run or "dryRun" in query),
    )
    errors, dry_run = _errors(delete_options), sent_options.dry_run or [query.get("dryRun", "All")]
    if dry_run != ["All"]:
        errors.append(not_supported("dryRun", [*dry_run], ["All"]))
    if errors:
        raise apierrors.invalid("meta.k8s.io", "DeleteOptions", "", errors)
    return delete_options


def _errors(delete_options: DeleteOptions) -> list[FieldError]:
    if delete_options.propagation is not None and delete_options.orphan_dependents is not None:
        text = "orphanDependents and deletionPropagation cannot be both set"
        return [invalid("propagationPolicy", delete_options.propagation, text)]
    if delete_options.propagation is not None and delete_options.propagation not in FINALIZER_OF:
        return [
            not_supported(
                "propagationPolicy", delete_options.propagation, ["Foreground", "Background", "Orphan", "nil"]
            )
        ]
    return []


def success_status(call: Call, obj: JSONObject) -> JSONObject:
    """Build the Status for a removed object."""
    resource = call.served.resource
    details = {"name": meta.name(obj), "group": resource.group, "kind": resource.plural, "uid": meta.uid(obj)}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {name: value for name, value in details.items() if value},
    }


BATCH: Final = 25
"""The number of objects in a batch. A batch of the largest objects takes about one hundred milliseconds."""


async def delete_collection(backend: Backend, call: Call) -> Page:
    """Delete the selected objects like single DELETE requests. Return the original objects.

    All objects are selected before the first one is deleted, as in kube-apiserver. Because a collection can be large,
    it is read in batches, between which other requests are served, and only the keys of selected objects are kept.
    """
    delete_options = read_options(call)
    selected = filters.parse(call.served, call.namespace, call.query)
    backend.store.flush()
    deleted: list[bytes] = []
    for key in await _select(backend, call, selected):
        obj = backend.store.get(key)
        if obj is not None and await _delete(backend, call, obj, delete_options):
            deleted.append(encode(obj))
        await asyncio.sleep(0)
    return Page(deleted, backend.store.revision)


async def _select(backend: Backend, call: Call, selected: ObjectSelector) -> list[StoreKey]:
    """Return the keys of the selected objects."""
    keys: list[StoreKey] = []
    after = ("", "")
    while rows := list(islice(backend.store.list(call.served.stored_as, call.namespace, after=after), BATCH)):
        batch = [msgspec.json.decode(row) for row in rows]
        keys += [StoreKey(call.served.stored_as, *meta.key(obj)) for obj in batch if selected.matches(obj)]
        after = meta.key(batch[-1])
        await asyncio.sleep(0)
    return keys


async def _delete(backend: Backend, call: Call, obj: JSONObject, delete_options: DeleteOptions) -> bool:
    """Delete one object. Return whether it still existed, because a concurrent request can delete it."""
    object_call = replace(call, namespace=meta.namespace(obj), name=meta.name(obj))
    try:
        await delete_object(backend, object_call, delete_options)
    except StatusError as error:
        if error.code != 404:
            raise
        return False
    return True
