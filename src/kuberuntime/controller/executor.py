"""The executor: performs a `Plan`, action by action, and is the only caller of write verbs for controllers.

In: a plan. Out: what was written, so that the next look can wait until the caches show it (`barrier.py`). It stops at
the first failure and raises:

```
ExecutionError                 carries what was written before
├── ActionFailed               an action got an error; the cause is chained
├── LookAgain                  a status write met a newer object: plan again, without a word
└── PlanError                  the plan itself said so, after all its actions were performed
```

An object that exists already (`Create.if_absent`) or is gone already (`Delete`) is success, without events.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeAlias

import structlog

from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.errors import AlreadyExistsError, APIError, ConflictError, KubeError, NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import UID, JSONObject, ObjectKey, ResourceVersion
from kuberuntime.objects.resources import Resource
from kuberuntime.plan import Apply, Create, Delete, Effect, Emit, Event, Plan, PutStatus


@dataclass(frozen=True, slots=True)
class Written:
    """An object was written, and has at least this version."""

    resource: Resource
    key: ObjectKey
    version: ResourceVersion


@dataclass(frozen=True, slots=True)
class Removed:
    """The object with this UID is gone or going; without a UID, whichever had the name."""

    resource: Resource
    key: ObjectKey
    uid: UID | None


Write: TypeAlias = Written | Removed
WriteAction: TypeAlias = Apply | Create | Delete | PutStatus

VERBS: Final[dict[type[Effect], str]] = {
    Apply: "apply",
    Create: "create",
    Delete: "delete",
    PutStatus: "write the status of",
}

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class ExecutionError(KubeError):
    """A plan was not performed to its end; `writes` is what was done before."""

    def __init__(self, message: str, writes: Sequence[Write]) -> None:
        super().__init__(message)
        self.writes = tuple(writes)


class ActionError(ExecutionError):
    """An action got an error."""


class RequeueError(ExecutionError):
    """A status was computed from an object that has changed since."""


class PlanError(ExecutionError):
    """The plan carries a finding that no write can mend."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What one action came to: what to wait for, and whether its events are due."""

    write: Write | None
    did_something: bool


class Recorder(Protocol):
    """Takes events without waiting."""

    def record(self, event: Event) -> None:
        """Take one event."""
        ...


class Executor:
    """Performs plans with one client; events go to `events`."""

    def __init__(self, client: Client, events: Recorder, clock: Clock) -> None:
        self._client = client
        self._events = events
        self._clock = clock

    async def execute(self, plan: Plan) -> tuple[Write, ...]:
        """Perform the actions in order and return what was written; raise an `ExecutionError` at the first failure."""
        writes: list[Write] = []
        for action in plan.actions:
            if isinstance(action, Emit):
                self._record(action.events)
            else:
                await self._perform(action, writes)
        if plan.error is not None:
            raise PlanError(plan.error, writes)
        return tuple(writes)

    async def _perform(self, action: WriteAction, writes: list[Write]) -> None:
        started = self._clock.monotonic()
        try:
            outcome = await self._send(action)
        except KubeError as error:
            if isinstance(action, PutStatus) and isinstance(error, ConflictError):
                raise RequeueError(_describe(action, error), writes) from error
            if isinstance(error, APIError):
                self._record(_with_error(event, error) for event in action.on_failure)
            raise ActionError(_describe(action, error), writes) from error
        log.debug("wrote", action=type(action).__name__, write=outcome, seconds=self._clock.monotonic() - started)
        if outcome.write is not None:
            writes.append(outcome.write)
        if outcome.did_something:
            self._record(action.on_success)

    async def _send(self, action: WriteAction) -> _Outcome:
        match action:
            case Apply(resource=resource, object=obj, manager=manager):
                return _written(resource, await self._client.apply(resource, obj, manager=manager))
            case Create():
                return await self._create(action)
            case PutStatus(resource=resource, object=obj, resource_version=version):
                seen = obj | {"metadata": meta.metadata(obj) | {"resourceVersion": version}}
                return _written(resource, await self._client.update(resource, seen, subresource="status"))
            case Delete():
                return await self._delete(action)

    async def _create(self, action: Create) -> _Outcome:
        try:
            return _written(
                action.resource, await self._client.create(action.resource, action.object, body=action.body)
            )
        except AlreadyExistsError:
            if action.if_absent:
                return _Outcome(None, did_something=False)
            raise

    async def _delete(self, action: Delete) -> _Outcome:
        try:
            answer = await self._client.delete(
                action.resource, action.key, propagation=action.propagation, uid=action.uid
            )
        except APIError as error:
            is_gone = isinstance(error, NotFoundError) or (isinstance(error, ConflictError) and action.uid is not None)
            if not is_gone:
                raise
            return _Outcome(Removed(action.resource, action.key, action.uid), did_something=False)
        removed = Removed(action.resource, action.key, action.uid or _uid_of(answer))
        return _Outcome(removed, did_something=True)

    def _record(self, events: Iterable[Event]) -> None:
        for event in events:
            self._events.record(event)


def _written(resource: Resource, answer: JSONObject) -> _Outcome:
    return _Outcome(Written(resource, meta.key(answer), meta.resource_version(answer)), did_something=True)


def _uid_of(answer: JSONObject) -> UID | None:
    """Return the UID in the answer to a deletion: an object, or a Status that names one."""
    details = answer.get("details") or {}
    return meta.uid(answer) or UID(str(details.get("uid") or "")) or None


def _with_error(event: Event, error: APIError) -> Event:
    return replace(event, note=event.note.replace("{error}", error.message))


def _describe(action: WriteAction, error: KubeError) -> str:
    key = action.key if isinstance(action, Delete) else meta.key(action.object)
    return f"{VERBS[type(action)]} {action.resource.kind} {key}: {error}"
