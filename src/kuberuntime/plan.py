"""Plans as values: what a decision wants done, in order, without doing it.

A core function returns a `Plan`; the executor (`kuberuntime/controller/executor.py`) performs its actions one after the other and stops
at the first failure. Events belong to actions, so that their texts are data: `on_success` is emitted after the action
did something, `on_failure` instead of it when the API server refused, with `{error}` in the note replaced.
"""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from kuberuntime.objects.meta import UID, JSONObject, ObjectKey, ResourceVersion
from kuberuntime.objects.resources import Resource

EventType: TypeAlias = Literal["Normal", "Warning"]
Propagation: TypeAlias = Literal["Foreground", "Background", "Orphan"]


@dataclass(frozen=True, slots=True)
class Event:
    """One event as events.k8s.io/v1 has it; `note` may contain `{error}` where it belongs to a failure."""

    type: EventType
    reason: str
    action: str
    note: str
    regarding: JSONObject
    related: JSONObject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What every action has: the resource it writes to, and the events that tell of it."""

    resource: Resource
    on_success: tuple[Event, ...] = ()
    on_failure: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Apply(Effect):
    """Server-side apply of `object` with force, as field manager `manager`."""

    object: JSONObject
    manager: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Create(Effect):
    """Create `object`. With `if_absent` an AlreadyExists is success without events; otherwise it is a failure.

    `body`, where given, is sent verbatim instead of an encoding of `object` (R-REV-7).
    """

    object: JSONObject
    if_absent: bool = False
    body: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete(Effect):
    """Delete one object, only if its UID is still `uid` (where given). An object already gone is success."""

    key: ObjectKey
    propagation: Propagation
    uid: UID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PutStatus(Effect):
    """Replace `status` of the object as it was seen at `resource_version`; a conflict means: look again, silently.

    `object` is the whole object as seen, with the new status.
    """

    object: JSONObject
    resource_version: ResourceVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class Emit:
    """Emit events that belong to no write."""

    events: tuple[Event, ...]


Action: TypeAlias = Apply | Create | Delete | PutStatus | Emit


@dataclass(frozen=True, slots=True)
class Plan:
    """Actions in order, and when to look again without being asked (`requeue_after`, seconds; None: never).

    `error` is a finding that no write can mend: the executor performs the actions, then raises it, so that the queue
    backs off and tries again.
    """

    actions: tuple[Action, ...] = ()
    requeue_after: float | None = None
    error: str | None = field(default=None)

    def __bool__(self) -> bool:
        return bool(self.actions) or self.requeue_after is not None or self.error is not None
