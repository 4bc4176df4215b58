"""Performs the actions of a `Plan`. Controllers write only through the executor.

Input: a plan. Output: the writes, so that the next plan can wait until the caches contain them (`expectations.py`).
The executor stops at the first failure and raises:

```
ExecutionError          contains the writes performed before the failure
├── ActionError         an action failed; the cause is chained
├── PostponedError      a write waits, since others take it back: all other actions were performed
├── RequeueError        a replacement conflicted with a newer object: plan again, no warning
└── PlanError           the plan has an error, which is raised after all its actions were performed
```

If an object already exists (`if_absent`, `unless_own`) or is already deleted (`Delete`, `if_present`), the action
succeeds without events.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol, TypeVar

import structlog
from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.controller.contention import (
    Contention,
    Contestable,
    Target,
    content_hash,
    describe_conflicts,
    write_target,
)
from kuberuntime.controller.executionerrors import ActionError, ExecutionError, PlanError, PostponedError, RequeueError
from kuberuntime.controller.writes import ObjectRemoval, ObjectWrite, Write, describe
from kuberuntime.errors import (
    AlreadyExistsError,
    APIError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    KubeError,
    NotFoundError,
)
from kuberuntime.objects import appliedfields, meta
from kuberuntime.objects.meta import UID, JSONObject, ObjectKey
from kuberuntime.objects.resources import Resource
from kuberuntime.plan import (
    Action,
    Actions,
    Apply,
    Concurrently,
    Create,
    Delete,
    DeleteCollection,
    Emit,
    Event,
    Finally,
    Patch,
    Plan,
    Put,
    PutStatus,
    WriteAction,
    events_with_error,
    insert_error,
)

T = TypeVar("T")


AT_ONCE: Final = 8
"""The maximum number of concurrent sequences of an action. More sequences would delay other writes."""

LOGGED: Final = 5
"""The maximum number of additional failures that are logged for each raised failure."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class _Outcome(Struct, frozen=True):
    """The result of an action, which contains the writes to wait for, and whether to record the events."""

    write: Write | None
    has_effect: bool


_NOTHING: Final = _Outcome(None, has_effect=False)


class Recorder(Protocol):
    """Records events without blocking."""

    def record(self, event: Event) -> None:
        """Record an event."""


class NoEvents:
    """A recorder that discards all events."""

    def record(self, event: Event) -> None:
        """Discard the event."""


class Executor:
    """Performs plans with a client, and records events in `events`."""

    def __init__(self, client: Client, events: Recorder, clock: Clock) -> None:
        self._client = client
        self._events = events
        self._clock = clock
        self._contention = Contention()
        self._log = log.bind()  # an unbound logger is built again for each line

    async def execute(self, plan: Plan) -> tuple[Write, ...]:
        """Perform the actions in order and return the writes. Raise an `ExecutionError` on the first failure."""
        writes: list[Write] = []
        try:
            await self._perform_all(plan.actions, writes)
            if plan.error is not None:
                raise PlanError(plan.error)
        except ExecutionError as error:
            if _is_failure(error) and not isinstance(error.__cause__, ConflictError):
                await self._attempt(plan.on_failure, writes, [])
            error.writes = tuple(writes)
            raise
        return tuple(writes)

    async def _perform_all(self, actions: Actions, writes: list[Write]) -> None:
        postponed: PostponedError | None = None
        for action in actions:
            try:
                await self._perform(action, writes)
            except PostponedError as error:
                postponed = error
        if postponed is not None:
            raise postponed

    async def _perform(self, action: Action, writes: list[Write]) -> None:
        match action:
            case Emit(events=events):
                self._record(events)
            case Concurrently():
                await self._perform_concurrently(action, writes)
            case Finally():
                await self._perform_finally(action, writes)
            case _:
                await self._write(action, writes)

    async def _perform_concurrently(self, action: Concurrently, writes: list[Write]) -> None:
        batches = slow_start(action.sequences) if action.slow_start else [action.sequences]
        places = asyncio.Semaphore(AT_ONCE)

        async def attempt(actions: Actions, failures: list[ExecutionError]) -> None:
            async with places:
                await self._attempt(actions, writes, failures)

        for batch in batches:
            failures: list[ExecutionError] = []
            async with asyncio.TaskGroup() as group:
                for actions in batch:
                    group.create_task(attempt(actions, failures))
            _raise_first(failures)

    async def _perform_finally(self, action: Finally, writes: list[Write]) -> None:
        failures: list[ExecutionError] = []
        after = action.after
        await self._attempt(action.actions, writes, failures)
        if failures and _is_failure(failures[0]):
            is_rejected = isinstance(failures[0].__cause__, ForbiddenError | InvalidError)
            due = action.on_failure + (action.on_rejection if is_rejected else ())
            report = tuple(replace(patch, patch=insert_error(patch.patch, str(failures[0]))) for patch in due)
            await self._attempt(report, writes, failures)
            after = action.after if action.otherwise is None else action.otherwise
        await self._attempt(after, writes, failures)
        _raise_first(failures)

    async def _attempt(self, actions: Actions, writes: list[Write], failures: list[ExecutionError]) -> None:
        try:
            await self._perform_all(actions, writes)
        except ExecutionError as failure:
            failures.append(failure)

    async def _write(self, action: WriteAction, writes: list[Write]) -> None:
        started = self._clock.monotonic()
        try:
            if isinstance(action, Contestable) and action.on_contention:
                outcome = await self._perform_unless_contested(action)
            else:
                outcome = await self._send(action)
        except (RequeueError, PostponedError):
            raise
        except KubeError as error:
            if isinstance(action, Put | PutStatus) and isinstance(error, ConflictError):
                raise RequeueError(describe(action, error)) from error
            if isinstance(error, APIError) and not _is_silent(action, error):
                self._record(events_with_error(action.on_failure, error.message))
            if isinstance(action, Patch) and action.if_permitted and isinstance(error, ForbiddenError):
                return
            raise ActionError(describe(action, error)) from error
        self._log.debug("wrote", action=type(action).__name__, write=outcome, seconds=self._clock.monotonic() - started)
        if outcome.write is not None:
            writes.append(outcome.write)
        if outcome.has_effect:
            self._record(action.on_success)

    async def _send(self, action: WriteAction) -> _Outcome:
        match action:
            case Apply():
                return await self._apply(action)
            case Create():
                return await self._create(action)
            case Put(resource=resource, object=obj, subresource=subresource):
                return _write_outcome(resource, await self._client.update(resource, obj, subresource=subresource))
            case Patch() | PutStatus():
                return await self._change(action)
            case Delete():
                return await self._delete(action)
            case DeleteCollection(resource=resource, namespace=namespace):
                await self._client.delete_collection(resource, namespace)
                return _Outcome(None, has_effect=True)

    async def _apply(self, action: Apply) -> _Outcome:
        resource, obj = action.resource, action.object
        try:
            response = await self._client.apply(resource, obj, manager=action.manager)
            if (corrected := appliedfields.without_account(obj, response)) is not None:
                response = await self._client.apply(resource, corrected, manager=action.manager)
            return _write_outcome(resource, response, is_kept=True)
        except InvalidError as error:
            for existing in await self._find_existing(resource, meta.key(obj)):
                if _is_of_other(existing, obj):
                    name = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
                    message = f'{name} "{meta.name(obj)}" already exists: it {meta.describe_controller(existing)}'
                    raise AlreadyExistsError(error.status | {"message": message}) from error
            raise

    async def _perform_unless_contested(self, action: Contestable) -> _Outcome:
        """Perform a write, or delay it if a different writer repeatedly reverts it."""
        target, content = write_target(action), content_hash(action)
        wait = self._contention.delay(target, content, self._clock.monotonic())
        if wait and (not self._contention.must_report(target) or await self._is_contested(action, target)):
            raise PostponedError(f"{action.resource.kind} {target.key}: another client reverts the write", wait)
        outcome = await self._send(action)
        self._contention.record_write(target, content, self._clock.monotonic())
        return outcome

    async def _is_contested(self, action: Contestable, target: Target) -> bool:
        """Return whether the stored object has different field values. If so, report the fields and their writers."""
        stored = next(iter(await self._find_existing(action.resource, target.key)), None)
        fields = describe_conflicts(action, stored) if stored else ""
        if fields:
            log.warning(
                "another client reverts the write", kind=action.resource.kind, object=str(target.key), fields=fields
            )
            self._record(events_with_error(action.on_contention, fields))
        else:
            self._contention.remove(target)
        return bool(fields)

    async def _find_existing(self, resource: Resource, key: ObjectKey) -> Sequence[JSONObject]:
        """Return the existing object with this name. It is read by a list request, as for a cache."""
        name = f"metadata.name={key.name}"
        return (await self._client.list(resource, namespace=key.namespace, field_selector=name)).items

    async def _create(self, action: Create) -> _Outcome:
        try:
            response = await self._client.create(
                action.resource, action.object, body=action.body, subresource=action.subresource
            )
        except AlreadyExistsError as error:
            if action.unless_own:
                await self._check_owner(action, error)
            elif not action.if_absent:
                raise
            return _NOTHING
        if action.subresource:  # the response is a Status, which does not contain the new version of the parent
            return _Outcome(None, has_effect=True)
        return _write_outcome(action.resource, response)

    async def _check_owner(self, action: Create, error: AlreadyExistsError) -> None:
        """Raise an error with the owner of the existing object, unless this controller owns the object."""
        expected = meta.controller_of(action.object) or {}
        for existing in await self._find_existing(action.resource, meta.key(action.object)):
            owner = meta.controller_of(existing) or {}
            if owner and owner.get("uid") == expected.get("uid"):
                _check_fields(action, existing, error)
                return
            if owner and (owner.get("kind"), owner.get("name")) == (expected.get("kind"), expected.get("name")):
                raise RequeueError(f"{error}: it belongs to a previous {owner['kind']} {owner['name']}")
            used = None if owner else next((kind for kind in action.accepted if kind.admits(existing)), None)
            if used is not None:
                self._record(used.events)
                return
            whose = meta.describe_controller(existing)
            if not owner and action.accepted:
                whose += f", {', and '.join(dict.fromkeys(accepted.rejection_reason for accepted in action.accepted))}"
            raise AlreadyExistsError(error.status | {"message": f"{error.message}: it {whose}"})
        raise RequeueError(str(error))

    async def _change(self, action: Patch | PutStatus) -> _Outcome:
        try:
            return _write_outcome(action.resource, await self._send_change(action))
        except NotFoundError:
            if action.if_present:
                return _NOTHING
            raise

    async def _send_change(self, action: Patch | PutStatus) -> JSONObject:
        match action:
            case Patch(resource=resource, key=key, patch=patch, subresource=subresource, kind=kind):
                return await self._client.patch(resource, key, patch, kind=kind, subresource=subresource)
            case PutStatus(resource=resource, object=obj, resource_version=version):
                metadata = meta.metadata(obj) | {"resourceVersion": version}
                metadata.pop("managedFields", None)  # caches retain parts of the response
                body = obj | {"metadata": metadata}
                return await self._client.update(resource, body, subresource="status")

    async def _delete(self, action: Delete) -> _Outcome:
        try:
            response = await self._client.delete(
                action.resource,
                action.key,
                propagation=action.propagation,
                uid=action.uid,
                grace_period=action.grace_period,
            )
        except APIError as error:
            is_gone = isinstance(error, NotFoundError) or (isinstance(error, ConflictError) and action.uid is not None)
            if not is_gone:
                raise
            return _Outcome(ObjectRemoval(action.resource, action.key, action.uid), has_effect=False)
        removed = ObjectRemoval(action.resource, action.key, action.uid or _uid_of(response))
        return _Outcome(removed, has_effect=True)

    def _record(self, events: Iterable[Event]) -> None:
        for event in events:
            self._events.record(event)


def _is_silent(action: WriteAction, error: APIError) -> bool:
    return isinstance(action, Create) and action.is_silent_if_exists and isinstance(error, AlreadyExistsError)


def _check_fields(action: Create, existing: JSONObject, error: AlreadyExistsError) -> None:
    """Raise `RequeueError` if the existing object does not match the object to create."""
    for path in action.equal:
        if meta.at(existing, path) != meta.at(action.object, path):
            raise RequeueError(f"{error}: its {'.'.join(path)} differs")


def _is_of_other(existing: JSONObject, desired: JSONObject) -> bool:
    """Return whether the object has a different controller, or has a different selector and no controller."""
    owner, expected = meta.controller_of(existing), meta.controller_of(desired)
    if owner is None or expected is None:
        return owner is None and bool(meta.spec(existing).get("selector") != meta.spec(desired).get("selector"))
    return (owner["kind"], owner["name"]) != (expected["kind"], expected["name"])


def _is_failure(error: ExecutionError) -> bool:
    """Return whether an action failed. Conflicts with a later version and delayed writes are not failures."""
    return not isinstance(error, RequeueError | PostponedError)


def _raise_first(failures: Sequence[ExecutionError]) -> None:
    """Raise the first failure and log the other failures. Conflicts and delayed writes are raised last."""
    if not failures:
        return
    raised, *others = sorted(failures, key=lambda failure: not _is_failure(failure))
    if others:
        log.warning("other actions failed", count=len(others), errors=[str(other) for other in others[:LOGGED]])
    raise raised


def slow_start(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Split items into batches of doubling size.

    >>> [len(batch) for batch in slow_start(range(10))]
    [1, 2, 4, 3]
    """
    begin, size = 0, 1
    while begin < len(items):
        yield items[begin : begin + size]
        begin, size = begin + size, size * 2


def _write_outcome(resource: Resource, response: JSONObject, *, is_kept: bool = False) -> _Outcome:
    obj = response if is_kept else {}
    return _Outcome(ObjectWrite(resource, meta.key(response), meta.resource_version(response), obj), has_effect=True)


def _uid_of(response: JSONObject) -> UID | None:
    """Return the UID from a deletion response, which is an object or a Status."""
    details = response.get("details") or {}
    return meta.uid(response) or UID(str(details.get("uid") or "")) or None
