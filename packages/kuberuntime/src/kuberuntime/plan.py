"""Represents the writes and events of a reconciliation as plans, which are ordered values.

A reconciliation returns a `Plan`. The executor (`kuberuntime/controller/executor.py`) performs its actions in order,
and stops at the first failure. Events belong to actions: `on_success` is emitted after the action changed an object,
and `on_failure` after the API server rejected it, with `{error}` in the note replaced.

| group | actions |
|---|---|
| one object | `Create`, `Apply`, `Patch`, `Put`, `PutStatus`, `Delete` |
| many objects | `DeleteCollection` |
| no write | `Emit` |
| composite | `Concurrently` (concurrently), `Finally` (the last ones also after a failure) |
"""

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, TypeAlias, TypedDict, Unpack

from msgspec import Struct, field
from msgspec.structs import replace

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSON, UID, JSONObject, ObjectKey, ResourceVersion
from kuberuntime.objects.resources import Resource

EventType: TypeAlias = Literal["Normal", "Warning"]
Propagation: TypeAlias = Literal["Foreground", "Background", "Orphan"]
MergeKind: TypeAlias = Literal["merge", "strategic"]


class AggregatedNote(NamedTuple):
    """The common note of similar events. `{numbers}` is replaced with their numbers."""

    note: str
    number: int


class Event(Struct, frozen=True):
    """An events.k8s.io/v1 event. If it reports a failure, its `note` can contain `{error}`.

    `reporter` is the reporting controller, or empty for the default of the process. Events with the same `of_many.note`
    about the same object may be recorded as one event.
    """

    type: EventType
    reason: str
    action: str
    note: str
    regarding: JSONObject
    related: JSONObject | None = None
    reporter: str = ""
    of_many: AggregatedNote | None = None


class Effect(Struct, frozen=True, kw_only=True):
    """The common fields of writes, which are the resource and the events that report the write."""

    resource: Resource
    on_success: tuple[Event, ...] = ()
    on_failure: tuple[Event, ...] = ()


class Apply(Effect, frozen=True, kw_only=True):
    """Apply `object` server-side with force and with the field manager `manager`.

    With `on_contention`, the write is delayed while other writers revert the same content (`controller/contention.py`).
    The events report this, with `{error}` replaced by the fields and their writers.
    """

    object: JSONObject
    manager: str
    on_contention: tuple[Event, ...] = ()


class AcceptedField(Struct, frozen=True):
    """A field that permits adopting an existing object without a controller. `events` report the adoption.

    The field at `path` must equal `value`. If `value` is an object, its members must match, and None matches any value.
    """

    path: str
    value: str | dict[str, str | None]
    events: tuple[Event, ...] = ()

    def admits(self, obj: JSONObject) -> bool:
        """Return whether an object has the field."""
        actual = meta.at(obj, self.path.split("."))
        if not isinstance(self.value, dict) or not isinstance(actual, dict):
            return bool(actual == self.value)
        return bool(actual) and all(key in self.value and self.value[key] in (None, own) for key, own in actual.items())

    @property
    def rejection_reason(self) -> str:
        """Return the reason why an object without the field is not adopted."""
        return f"its {self.path} {'does not match' if isinstance(self.value, dict) else f'is not {self.value}'}"


class Create(Effect, frozen=True, kw_only=True):
    """Create `object`. With `if_absent`, an AlreadyExists error is treated as success without events.

    With `unless_own`, this is a failure only if the existing object has a different controller. An own object already
    exists if the response to its creation was lost. If the object differs in one of the `equal` fields (paths), it is
    a different object, and the key is requeued. An object without a controller is adopted if it has one of the
    `accepted` fields. An object of a predecessor is waited for, without events. With `is_silent_if_exists`,
    AlreadyExists is a failure without events. If `body` is set, it is sent verbatim instead of an encoding of
    `object`, so that its bytes equal the hashed bytes (R-REV-7). With `subresource`, the object is posted to that
    subresource (`binding`).
    """

    object: JSONObject
    if_absent: bool = False
    unless_own: bool = False
    is_silent_if_exists: bool = False
    equal: tuple[tuple[str, ...], ...] = ()
    accepted: tuple[AcceptedField, ...] = ()
    body: bytes | None = None
    subresource: str = ""


class Patch(Effect, frozen=True, kw_only=True):
    """Merge `patch` into an object or a subresource. `guarded_patch` builds most patches.

    With `if_present`, a deleted object is success without events. With `if_permitted`, a Forbidden error does not stop
    the plan: `on_failure` reports it, and the next actions follow. A `strategic` merge also merges lists that have
    keys, such as conditions. `on_contention` is the same as in `Apply`.
    """

    key: ObjectKey
    patch: JSONObject
    subresource: str = ""
    if_present: bool = False
    if_permitted: bool = False
    kind: MergeKind = "merge"
    on_contention: tuple[Event, ...] = ()


class Put(Effect, frozen=True, kw_only=True):
    """Replace an object or a subresource if its version is current. After a conflict, the key is requeued.

    `on_contention` is as in `Apply`.
    """

    object: JSONObject
    subresource: str = ""
    on_contention: tuple[Event, ...] = ()


class PutStatus(Effect, frozen=True, kw_only=True):
    """Replace the `status` of the object at `resource_version`. After a conflict, the key is requeued.

    `object` is the whole observed object with the new status. With `if_present` a deleted object is success without
    events.
    """

    object: JSONObject
    resource_version: ResourceVersion
    if_present: bool = False


class Delete(Effect, frozen=True, kw_only=True):
    """Delete one object. If `uid` is set, it is a precondition. A missing object is treated as success.

    Without `propagation` and `grace_period` (seconds), the API server uses the defaults of the kind.
    """

    key: ObjectKey
    propagation: Propagation | None = None
    uid: UID | None = None
    grace_period: int | None = None


class DeleteCollection(Effect, frozen=True, kw_only=True):
    """Delete all objects of one kind in `namespace`."""

    namespace: str


class Emit(Struct, frozen=True, kw_only=True):
    """Emit events that are independent of a write."""

    events: tuple[Event, ...]


class Concurrently(Struct, frozen=True, kw_only=True):
    """Perform sequences concurrently.

    A failure stops its own sequence, and fails the action after the other sequences have completed.

    A few sequences run concurrently. With `slow_start`, one sequence runs first, then twice as many each time, and none
    after a failure, so that a batch that cannot succeed (quota, an invalid template) costs few requests.
    """

    sequences: "tuple[Actions, ...]"
    slow_start: bool = True


class Finally(Struct, frozen=True, kw_only=True):
    """Perform `actions`, and then `after`, even after a failure in `actions`. The first failure is reported.

    If an action fails, `on_failure` is performed before `after`. `on_rejection` is performed only if the API server
    responded that the action is forbidden or invalid. `{error}` is replaced in their patches. If `otherwise` is set
    and an action failed for a reason other than a conflict with a later version, it is performed instead of `after`.
    """

    actions: "Actions"
    after: "Actions" = ()
    otherwise: "Actions | None" = None
    on_failure: "tuple[Patch, ...]" = ()
    on_rejection: "tuple[Patch, ...]" = ()


WriteAction: TypeAlias = Apply | Create | Patch | Put | PutStatus | Delete | DeleteCollection
Action: TypeAlias = WriteAction | Emit | Concurrently | Finally
Actions: TypeAlias = tuple[Action, ...]
"""A sequence of actions. The first failure stops the sequence."""


class Plan(Struct, frozen=True):
    """A sequence of actions.

    `requeue_after` is the number of seconds until the key is requeued, or None if it is not requeued.

    `error` is an error that no write can correct. The executor performs the actions and then raises it, so that the
    key is requeued with a back-off. If that error is raised, or an action fails for a reason other than a conflict
    with a later version, `on_failure` is performed.
    """

    actions: Actions = ()
    requeue_after: float | None = None
    error: str | None = field(default=None)
    on_failure: Actions = ()

    def __bool__(self) -> bool:
        return bool(self.actions) or self.requeue_after is not None or self.error is not None

    def with_requeue_limit(self, seconds: float) -> "Plan":
        """Return the plan with a maximum time in seconds until the key is requeued."""
        soon = seconds if self.requeue_after is None else min(seconds, self.requeue_after)
        return replace(self, requeue_after=soon)


def flatten(actions: Actions) -> Iterator[WriteAction | Emit]:
    """Yield all actions. Composite actions are replaced with their parts."""
    for action in actions:
        match action:
            case Concurrently(sequences=sequences):
                for sequence in sequences:
                    yield from flatten(sequence)
            case Finally(actions=first, after=after):
                yield from flatten((*first, *after))
            case _:
                yield action


def without(actions: Actions, left_out: WriteAction) -> Actions:
    """Return the actions without one action. If it was the first part of a `Finally`, the later parts remain."""
    remaining: list[Action] = []
    for action in actions:
        if isinstance(action, Finally) and left_out in action.actions:
            first = without(action.actions, left_out)
            remaining += [replace(action, actions=first)] if first else action.after
        elif action is not left_out:
            remaining.append(action)
    return tuple(remaining)


class PatchFields(TypedDict, total=False):
    """The fields of a `Patch`, except for the patch itself."""

    subresource: str
    if_present: bool
    if_permitted: bool
    kind: MergeKind
    on_success: tuple[Event, ...]
    on_failure: tuple[Event, ...]


def guarded_patch(resource: Resource, obj: JSONObject, change: JSONObject, **fields: Unpack[PatchFields]) -> Patch:
    """Return a patch with the UID and resourceVersion of `obj` as preconditions."""
    guard = {"metadata": {"resourceVersion": meta.resource_version(obj)} | meta.metadata(change)}
    return identified_patch(resource, obj, change | guard, **fields)


def identified_patch(resource: Resource, obj: JSONObject, change: JSONObject, **fields: Unpack[PatchFields]) -> Patch:
    """Return a patch with only the UID of `obj` as a precondition, so that any resourceVersion is accepted."""
    patch = change | {"metadata": {"uid": meta.uid(obj)} | meta.metadata(change)}
    return Patch(resource=resource, key=meta.key(obj), patch=patch, **fields)


def concurrently(actions: Iterable[Action]) -> Actions:
    """Return an action that performs the actions concurrently and independently, or nothing if there are none."""
    sequences = tuple((action,) for action in actions)
    return (Concurrently(sequences=sequences),) if sequences else ()


def changed_status(resource: Resource, obj: JSONObject, status: JSONObject) -> tuple[PutStatus, ...]:
    """Return a write of the complete status if it changed, unless the object is deleted."""
    if status == {name: value for name, value in meta.status(obj).items() if value is not None}:
        return ()
    version, changed = meta.resource_version(obj), obj | {"status": status}
    return (PutStatus(resource=resource, object=changed, resource_version=version, if_present=True),)


def guarded_delete(resource: Resource, obj: JSONObject, *, on_success: tuple[Event, ...] = ()) -> Delete:
    """Return an action that deletes an object in the background, with the UID of `obj` as a precondition."""
    return Delete(
        resource=resource, key=meta.key(obj), uid=meta.uid(obj), propagation="Background", on_success=on_success
    )


def events_with_error(events: Iterable[Event], error: str) -> Iterator[Event]:
    """Yield the events with `{error}` replaced in their notes."""
    return (replace(event, note=event.note.replace("{error}", error)) for event in events)


def insert_error(value: JSON, error: str) -> JSON:
    """Return the value with `{error}` replaced in its strings."""
    if isinstance(value, dict):
        return {name: insert_error(inner, error) for name, inner in value.items()}
    if isinstance(value, list):
        return [insert_error(inner, error) for inner in value]
    return value.replace("{error}", error) if isinstance(value, str) else value
