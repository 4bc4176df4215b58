"""Maintains the shared model of a server, with one watch per kind for all open pages.

It watches sets and pods, and creates a snapshot 100 ms after a change. Further changes are combined, at most twice per
second. Unhealthy sets are diagnosed at most every two seconds, while a browser shows a page.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final, TypeVar

import structlog
from msgspec.structs import replace

from kuberuntime import timeouts
from kuberuntime.cache.informer import Change
from kuberuntime.client.client import Client
from kuberuntime.client.requests import Selection as Query
from kuberuntime.clock import Clock, SystemClock
from kuberuntime.errors import KubeError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.texts import errorboundary
from leaderworkerset.api.resources import DISAGGREGATED_SETS, LEADERWORKERSETS
from lwsctl.dashboard.setorder import SetOrder, update_order
from lwsctl.dashboard.snapshot import Snapshot, set_location
from lwsctl.diagnosis.document import BLOCKS, sort_by_urgency
from lwsctl.diagnosis.facts import is_as_desired
from lwsctl.diagnosis.observed import Commands
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.model.disaggregatedset import set_view
from lwsctl.observation import evidence, setdiagnoses
from lwsctl.observation.conditionwatch import AllSets, ChangeSource, Relistable, Supplement, watch_conditions
from lwsctl.observation.evidence import ReadEpisodes, RunLines
from lwsctl.observation.lists import Lists
from lwsctl.views.selection import Selection

TOGETHER: Final = 0.1
"""The time in seconds in which changes are collected before they are shown."""

SHORTEST_PAUSE: Final = 0.4
LONGEST_PAUSE: Final = 1.0
"""The minimum and maximum delay in seconds before the next snapshot while changes continue."""

BETWEEN_DIAGNOSES: Final = 2.0
AGAIN: Final = 10.0
"""The interval in seconds between diagnoses of unhealthy sets, and between connection attempts."""

PATIENCE: Final = 10.0
LONGEST_PATIENCE: Final = 120.0
"""The timeout in seconds for the diagnosis of all sets. It doubles after each timeout, up to the maximum."""

T = TypeVar("T")

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class LiveModel:
    """The current snapshot, and a notification about each new snapshot."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        commands: Commands,
        clock: Clock | None = None,
        read_episodes: ReadEpisodes | None = None,
    ) -> None:
        self.client = client
        self.namespace = namespace
        self.commands = commands
        self.read_episodes = read_episodes
        self.clock = clock or SystemClock()
        self.everything = AllSets(client, namespace, "", self.clock)
        sets = Query(DISAGGREGATED_SETS, namespace)
        self._sets = Supplement(client, sets, is_needed=True, optional=True)
        self._diagnoses: dict[ObjectKey, Diagnosis] = {}
        self._of_sets: dict[ObjectKey, Diagnosis] = {}
        self._runs: dict[Hashable, RunLines] = {}
        self._trouble = ""
        self._responded_at = self.clock.now()
        self._changed, self._stale = asyncio.Event(), asyncio.Event()
        self._shown = asyncio.Event()
        self._viewers = 0
        self._order = SetOrder()
        self._patience = PATIENCE
        self.snapshot = Snapshot(namespace=namespace, now=self.clock.now(), commands=commands)

    @property
    def informers(self) -> tuple[Relistable, ...]:
        """Return the informers."""
        return (*self.everything.all, self._sets)

    @asynccontextmanager
    async def update_diagnoses(self) -> AsyncIterator[None]:
        """Update diagnoses while the context is active, because a browser shows a page."""
        self._viewers += 1
        self._stale.set()
        try:
            yield
        finally:
            self._viewers -= 1

    async def wait_for_change(self) -> None:
        """Wait for the next snapshot."""
        await self._shown.wait()

    async def wait_for(self, check: Callable[[], T | None]) -> T:
        """Return the first result of `check` that is not None. `check` is called for each new snapshot."""
        while (response := check()) is None:
            await self.wait_for_change()
        return response

    def refresh_snapshot(self) -> None:
        """Create a new snapshot. If this fails, keep the previous snapshot, and report since when it is outdated."""
        try:
            self.snapshot = self._build_snapshot()
        except Exception as error:  # stored objects may contain any value
            log.warning("the state could not be rendered", error=repr(error), exc_info=error)
            trouble = f"the state is outdated, because it cannot be rendered: {errorboundary.describe(error)}"
            self.snapshot = replace(self.snapshot, connection_error=trouble, last_response=self.snapshot.now)
        self.announce()

    def _build_snapshot(self) -> Snapshot:
        views = self.everything.views()
        snapshot = Snapshot(
            namespace=self.namespace,
            now=self.clock.now(),
            views=views,
            sets=[set_view(obj, views) for obj in sorted(self._sets.list_objects(), key=meta.key)],
            diagnoses=self._diagnoses,
            disaggregatedset_diagnoses=self._of_sets,
            connection_error=self._trouble,
            last_response=self._responded_at,
            order=self._order,
            commands=self.commands,
        )
        if not self._order.may_change(snapshot.now):
            return snapshot
        items = [(set_location(item), item.diagnosis) for item in snapshot.ordered]
        self._order = update_order(self._order, items, snapshot.now)
        return replace(snapshot, order=self._order)

    def announce(self) -> None:
        """Notify the waiting tasks about a new snapshot."""
        self._shown.set()
        self._shown = asyncio.Event()

    def start(self) -> None:
        """Start the watches."""
        for informer in self.informers:
            informer.subscribe(self._note)

    def relist(self) -> None:
        """Read all data again, because the cluster may have been replaced."""
        for informer in self.informers:
            informer.relist(lambda: None)

    def _note(self, _: Change) -> None:
        self._changed.set()
        if self._trouble:
            self._stale.set()  # the API server responds again

    async def follow(self) -> None:
        """Create a snapshot after each change. Changes in quick succession are combined."""
        while True:
            await self._changed.wait()
            await asyncio.sleep(TOGETHER)
            self._changed.clear()
            began = self.clock.monotonic()
            self.refresh_snapshot()
            self._stale.set()  # last, because diagnosing a large set would delay the snapshot
            took = self.clock.monotonic() - began
            await asyncio.sleep(max(SHORTEST_PAUSE, min(3 * took, LONGEST_PAUSE)))

    async def run_diagnoses(self) -> None:
        """Diagnose after changes and every `AGAIN` seconds. If no page is open, only wait for the API server."""
        while True:
            with suppress(TimeoutError):
                async with timeouts.within(AGAIN):
                    await self._stale.wait()
            self._stale.clear()
            if self._viewers or self._trouble:
                await self.diagnose()
            await asyncio.sleep(BETWEEN_DIAGNOSES)

    async def diagnose(self) -> None:
        """Diagnose all unhealthy sets, reading each list once, and create a new snapshot."""
        views, sets = self.snapshot.views, self.snapshot.sets
        lists = Lists(self.client)
        now = self.clock.now()
        ill = [view for view in views if not is_as_desired(view, Selection(view.name), now)]
        try:
            async with timeouts.within(self._patience):
                diagnoses = await setdiagnoses.survey(lists, ill, self.namespace, self.commands, self.clock)
                of_sets = await setdiagnoses.diagnose_sets(lists, sets, self.namespace, self.commands, self.clock)
                await self.client.list_page(Query(LEADERWORKERSETS, self.namespace), limit=1)
        except Exception as error:  # the previous diagnoses remain
            first = _first_error(error)
            if isinstance(first, KubeError | TimeoutError):
                reason = str(first) or f"no response within {self._patience:g} s"
                if isinstance(first, TimeoutError):
                    self._patience = min(2 * self._patience, LONGEST_PATIENCE)
                self._trouble = f"the state might be outdated, because the API server does not respond: {reason}"
            else:
                log.warning("diagnosis failed", error=repr(error), exc_info=error)
        else:
            if self._trouble:
                self.relist()  # a watch may have a long retry delay, or hang after the machine was suspended
            self._trouble, self._responded_at, self._patience = "", self.clock.now(), PATIENCE
            diagnoses = await self._with_evidence(diagnoses)
            self._diagnoses = {ObjectKey(diagnosis.namespace, diagnosis.target): diagnosis for diagnosis in diagnoses}
            self._of_sets = {ObjectKey(diagnosis.namespace, diagnosis.target): diagnosis for diagnosis in of_sets}
        self.refresh_snapshot()

    async def _with_evidence(self, diagnoses: Sequence[Diagnosis]) -> list[Diagnosis]:
        """Return the diagnoses.

        The most urgent diagnoses include logs and episodes. The log of each run is read once.
        """
        urgent = {evidence.run_identity(diagnosis): diagnosis for diagnosis in sort_by_urgency(diagnoses)[:BLOCKS]}
        known = {run: lines for run, lines in self._runs.items() if run in urgent}
        async with asyncio.TaskGroup() as tasks:
            reads = {
                run: tasks.create_task(evidence.find_run_lines(self.client, diagnosis, self.read_episodes))
                for run, diagnosis in urgent.items()
                if run is not None and run not in known
            }
        self._runs = known | {run: lines for run, read in reads.items() if (lines := read.result()) is not None}
        return [
            evidence.with_run_lines(diagnosis, self._runs.get(evidence.run_identity(diagnosis)))
            for diagnosis in diagnoses
        ]


def _first_error(error: Exception) -> Exception:
    """Return the first error in an exception group. Groups occur because lists are read concurrently."""
    return _first_error(error.exceptions[0]) if isinstance(error, ExceptionGroup) else error


@asynccontextmanager
async def run_model(model: LiveModel, *beside: ChangeSource) -> AsyncIterator[None]:
    """Run a live model while the context is active.

    It is synchronized and diagnosed first. `beside` may stop it with an error.
    """
    async with watch_conditions(*model.informers, *beside), asyncio.TaskGroup() as tasks:
        model.start()
        model.refresh_snapshot()
        await model.diagnose()
        running = [tasks.create_task(model.follow()), tasks.create_task(model.run_diagnoses())]
        try:
            yield
        finally:
            for task in running:
                task.cancel()
