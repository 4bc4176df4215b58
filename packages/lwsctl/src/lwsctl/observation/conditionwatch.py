"""Watches API objects while a command waits for a condition. The condition is checked after each change."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final, Protocol, TypeAlias, TypeVar

from kuberuntime import timeouts
from kuberuntime.cache.informer import Change, Informer
from kuberuntime.client.client import Client
from kuberuntime.client.requests import Selection, select_one
from kuberuntime.clock import Clock, SystemClock
from kuberuntime.errors import ForbiddenError, UnauthorizedError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import UID, JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS, Resource
from leaderworkerset.api import labels
from leaderworkerset.api.disaggregatedset import SET_NAME
from leaderworkerset.api.resources import DISAGGREGATED_SETS, LEADERWORKERSETS
from lwsctl.model.disaggregatedset import SetView, Shown, set_view
from lwsctl.model.events.warningevents import Evidence, explain_views, wants_events
from lwsctl.model.groups import Rank, rank_of
from lwsctl.model.leaderworkerset import View, view, views_of
from lwsctl.observation import lists
from lwsctl.views.unmetconditions import Check

T = TypeVar("T")

AGAIN: Final = 5.0
"""The delay in seconds before permissions for supplementary objects are checked again after a failure."""

LONGEST_PAUSE: Final = 0.25
"""The maximum delay in seconds for combining several changes."""


class ChangeSource(Protocol):
    """A source of changes, such as an informer, that runs while a command waits."""

    def subscribe(self, callback: Callable[[Change], None]) -> None:
        """Call `callback` after each change."""

    async def run(self) -> None:
        """Watch until the task is cancelled."""

    async def wait_synced(self) -> None:
        """Wait until the initial objects are known."""


class Relistable(ChangeSource, Protocol):
    """Objects that can be relisted."""

    def relist(self, then: Callable[[], None]) -> None:
        """Relist all objects, and call the callback when they are known."""


class Supplement:
    """Objects that explain other objects. After the first request, they are watched if the user has permission.

    If `is_needed` is set, they are watched immediately, and a wait starts when they are known or access is denied. An
    `optional` kind that is not served has no objects.
    """

    def __init__(
        self, client: Client, selection: Selection, *, is_needed: bool = False, optional: bool = False
    ) -> None:
        self._informer = Informer(client, selection, optional=optional)
        self._requested, self._is_denied, self._is_needed = asyncio.Event(), asyncio.Event(), is_needed
        if is_needed:
            self._requested.set()

    def list_objects(self) -> list[JSONObject]:
        """Return the objects that are currently known. The first call starts the watch."""
        self._requested.set()
        return list(self._informer.store.list())

    def subscribe(self, callback: Callable[[Change], None]) -> None:
        """Call `callback` after each change."""
        self._informer.subscribe(callback)

    def relist(self, then: Callable[[], None]) -> None:
        """Relist all objects."""
        self._informer.relist(then)

    async def wait_synced(self) -> None:
        """Wait until required objects are known or access is denied. Return immediately if they are not required."""
        if self._is_needed:
            responses = [
                asyncio.ensure_future(self._informer.wait_synced()),
                asyncio.ensure_future(self._is_denied.wait()),
            ]
            try:
                await asyncio.wait(responses, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for response in responses:
                    response.cancel()

    async def run(self) -> None:
        """Watch the objects after the first request if the user has permission. If this is unknown, retry."""
        await self._requested.wait()
        while True:
            try:
                await self._informer.run(gives_up=True)
            except ForbiddenError:
                self._is_denied.set()
                return
            except UnauthorizedError:  # an expired token; other code watches the object
                self._is_denied.set()
                await asyncio.sleep(AGAIN)


class Explanations:
    """Supplementary evidence in one or all namespaces, which consists of Warning events and recreation records."""

    def __init__(self, client: Client, namespace: str, name: str = "", clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._events = Supplement(client, lists.events_in(namespace))
        # without its record, a failed group looks healthy between two failures
        self._records = Supplement(client, lists.records_of(namespace, name), is_needed=True)

    @property
    def all(self) -> tuple[Relistable, ...]:
        """Return both supplements."""
        return (self._events, self._records)

    def with_evidence(self, views: list[View]) -> list[View]:
        """Return the views with the known evidence. Events are watched if any object is not ready."""
        events = self._events.list_objects() if wants_events(views) else []
        return explain_views(views, Evidence(events=events, records=self._records.list_objects()), self._clock.now())


class ConditionWatch:
    """The informers that run while a command waits."""

    def __init__(self, informers: tuple[ChangeSource, ...]) -> None:
        self._changed = asyncio.Event()
        for informer in informers:
            informer.subscribe(self._note)

    def _note(self, _: Change) -> None:
        self._changed.set()

    async def wait_for(self, check: Callable[[], T | None], *, every: float | None = None) -> T:
        """Return the first result of `check` that is not None. `check` is called after each change.

        If `every` is set, it is also called after this number of seconds without a change. After each check there is
        a pause (`remaining_pause`), and changes during the pause are checked together. The pause depends on the shorter of
        the last two checks, because a single check may take long on a machine with busy CPUs.
        """
        clock = SystemClock()
        before = 0.0
        while True:
            began = clock.monotonic()
            if (response := check()) is not None:
                return response
            ended = clock.monotonic()
            took, before = min(ended - began, before), ended - began
            with suppress(TimeoutError):
                async with timeouts.within(every):
                    await self._changed.wait()
            await asyncio.sleep(remaining_pause(took, clock.monotonic() - ended))
            self._changed.clear()


def remaining_pause(took: float, since: float) -> float:
    """Return the delay in seconds before the next check.

    The last check took `took` seconds, and was `since` seconds ago.

    The pause is three times as long as the check, and at most `LONGEST_PAUSE`, so that checks of thousands of pods do
    not use all CPU time. A change after the pause is checked immediately.

    >>> remaining_pause(0.0625, 0.125), remaining_pause(0.0625, 5.0)
    (0.0625, 0.0)
    """
    return max(0.0, min(3 * took, LONGEST_PAUSE) - since)


@asynccontextmanager
async def watch_conditions(*informers: ChangeSource) -> AsyncIterator[ConditionWatch]:
    """Run informers, and yield when all of them are synchronized.

    If the user does not have permission to watch an object, ForbiddenError is raised in an exception group, instead
    of waiting indefinitely.
    """
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(_run(informer)) for informer in informers]
        for informer in informers:
            await informer.wait_synced()
        try:
            yield ConditionWatch(informers)
        finally:
            for task in running:
                task.cancel()


async def _run(informer: ChangeSource) -> None:
    await (informer.run(gives_up=True) if isinstance(informer, Informer) else informer.run())


class AllSets:
    """The informers for the LeaderWorkerSets with these labels in one or all namespaces, and for their pods."""

    def __init__(self, client: Client, namespace: str, label_selector: str, clock: Clock | None = None) -> None:
        self.sets = Informer(client, Selection(LEADERWORKERSETS, namespace, label_selector))
        self.pods = Informer(client, Selection(PODS, namespace, labels.NAME))
        self._explanations = Explanations(client, namespace, clock=clock)
        self._ranks = KnownRanks()

    @property
    def all(self) -> tuple[Relistable, ...]:
        """Return the informers."""
        return (self.sets, self.pods, *self._explanations.all)

    def views(self) -> list[View]:
        """Return the current views by namespace and name. Unchanged pods are not parsed again."""
        return self._explanations.with_evidence(_views(self.sets, self.pods, self._ranks.build_reader()))


class KnownRanks:
    """The ranks of pods that were already parsed. Informers replace changed pods and never modify them."""

    def __init__(self) -> None:
        self._last: dict[UID, Rank] = {}

    def build_reader(self) -> Callable[[JSONObject], Rank]:
        """Return the function that converts pods to ranks. The cached ranks of other pods are dropped."""
        previous, self._last = self._last, {}
        current = self._last

        def describe(pod: JSONObject) -> Rank:
            uid = meta.uid(pod)
            rank = previous.get(uid)
            current[uid] = rank if rank is not None and rank.object is pod else rank_of(pod)
            return current[uid]

        return describe


def _views(sets: Informer, pods: Informer, describe: Callable[[JSONObject], Rank] = rank_of) -> list[View]:
    return views_of(sorted(sets.store.list(), key=meta.key), pods.store.list(), describe)


class SetInformers:
    """The informers for one LeaderWorkerSet and its pods."""

    def __init__(self, client: Client, key: ObjectKey) -> None:
        self.key = key
        self.set = Informer(client, select_one(LEADERWORKERSETS, key))
        self.pods = Informer(client, Selection(PODS, key.namespace, f"{labels.NAME}={key.name}"))
        self._explanations = Explanations(client, key.namespace, key.name)

    @property
    def all(self) -> tuple[ChangeSource, ...]:
        """Return the informers."""
        return (self.set, self.pods, *self._explanations.all)

    @property
    def object(self) -> JSONObject | None:
        """Return the LeaderWorkerSet, or None if it is deleted."""
        return self.set.store.get(self.key)

    def view(self) -> View | None:
        """Return the current view, or None if the LeaderWorkerSet is deleted."""
        lws = self.object
        return None if lws is None else self._explanations.with_evidence([view(lws, self.pods.store.list())])[0]


class DisaggregatedInformers:
    """The informers for a DisaggregatedSet, the LeaderWorkerSets with its label, and their pods."""

    def __init__(self, client: Client, key: ObjectKey) -> None:
        selector = f"{SET_NAME}={key.name}"
        self.key = key
        self.set = Informer(client, select_one(DISAGGREGATED_SETS, key))
        self.leaderworkersets = Informer(client, Selection(LEADERWORKERSETS, key.namespace, selector))
        self.pods = Informer(client, Selection(PODS, key.namespace, f"{selector},{labels.NAME}"))
        self._explanations = Explanations(client, key.namespace)

    @property
    def all(self) -> tuple[ChangeSource, ...]:
        """Return the informers."""
        return (self.set, self.leaderworkersets, self.pods, *self._explanations.all)

    @property
    def object(self) -> JSONObject | None:
        """Return the DisaggregatedSet, or None if it is deleted."""
        return self.set.store.get(self.key)

    def view(self) -> SetView | None:
        """Return the current view, or None if the DisaggregatedSet is deleted."""
        obj = self.object
        if obj is None:
            return None
        return set_view(obj, self._explanations.with_evidence(_views(self.leaderworkersets, self.pods)))


OneSet: TypeAlias = SetInformers | DisaggregatedInformers
"""The informers for one named LeaderWorkerSet or DisaggregatedSet."""


def informers_of(client: Client, resource: Resource, key: ObjectKey) -> OneSet:
    """Return the informers for a LeaderWorkerSet or a DisaggregatedSet."""
    return (DisaggregatedInformers if resource == DISAGGREGATED_SETS else SetInformers)(client, key)


FIRST_ANSWER: Final = 10.0
"""The timeout in seconds for reading the initial state, if only this state is checked."""


class WaitTimeoutError(TimeoutError):
    """Raised if the condition is not met in time. The message describes the unmet condition.

    `missing` contains only this condition. `view` is the last view, or None if there was none.
    """

    def __init__(self, name: str, seconds: float, missing: str, view: Shown | None) -> None:
        self.missing = missing
        self.view = view
        super().__init__(f"timed out waiting for {name} after {seconds:g} s: {missing}")


async def wait_for(
    informers: OneSet,
    check: Check,
    timeout: float | None,
    *,
    report: Callable[[str], None] = lambda _: None,
    beside: tuple[ChangeSource, ...] = (),
    every: float | None = None,
) -> Shown | None:
    """Wait until the condition is met. Return the final view.

    `report` is called when the unmet condition changes.

    If `every` is set, the check is also repeated after this number of seconds without a change.

    If the timeout is 0, only the initial state is checked, as in kubectl.
    """
    missing = "no response from the API server"
    seen: Shown | None = None
    name = informers.key.name

    def is_done() -> bool | None:
        nonlocal missing, seen
        seen = informers.view()
        missing = check(seen) or ""
        if missing:
            report(f"{name}: {missing}")
        return None if missing else True

    try:
        async with (
            timeouts.within(FIRST_ANSWER if timeout == 0 else timeout),
            watch_conditions(*informers.all, *beside) as objects,
        ):
            if is_done() is None and timeout != 0:
                await objects.wait_for(is_done, every=every)
    except TimeoutError as error:
        raise WaitTimeoutError(name, timeout or 0, missing, informers.view()) from error
    if missing:
        raise WaitTimeoutError(name, 0, missing, seen)
    return seen
