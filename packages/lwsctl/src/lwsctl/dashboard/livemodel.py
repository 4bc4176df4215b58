"""The shared model of one server: one watch of each kind, however many pages are open.

It follows sets and pods, and builds a picture 100 ms after a change, with the changes until then. Further ones are shown
together, at most twice a second. It diagnoses sets that are not as wanted, at most every two seconds and while somebody looks.
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
from lwsctl.dashboard.picture import Picture, place_of
from lwsctl.dashboard.setorder import SetOrder, arrange
from lwsctl.diagnosis.document import BLOCKS, ordered
from lwsctl.diagnosis.facts import is_as_desired
from lwsctl.diagnosis.observed import Commands
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.model.disaggregatedset import set_view
from lwsctl.observation import evidence, setdiagnoses
from lwsctl.observation.conditionwatch import AllSets, ChangeSource, Relistable, Supplement, following
from lwsctl.observation.evidence import ReadEpisodes, RunLines
from lwsctl.observation.lists import Lists
from lwsctl.views.selection import Selection

TOGETHER: Final = 0.1
"""Seconds in which changes are collected before they are shown."""

SHORTEST_PAUSE: Final = 0.4
LONGEST_PAUSE: Final = 1.0
"""The minimum and maximum seconds after a picture without another one, while changes continue."""

BETWEEN_DIAGNOSES: Final = 2.0
AGAIN: Final = 10.0
"""Seconds after which something that is not as wanted is diagnosed again without a change, and the server is tried."""

PATIENCE: Final = 10.0
LONGEST_PATIENCE: Final = 120.0
"""Seconds that the API server may take for one diagnosis of all: twice as long after each timeout, up to the maximum."""

T = TypeVar("T")

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class LiveModel:
    """The current picture, and a notification of every new one."""

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
        self._answered = self.clock.now()
        self._changed, self._stale = asyncio.Event(), asyncio.Event()
        self._shown = asyncio.Event()
        self._lookers = 0
        self._order = SetOrder()
        self._patience = PATIENCE
        self.picture = Picture(namespace=namespace, now=self.clock.now(), commands=commands)

    @property
    def followed(self) -> tuple[Relistable, ...]:
        """Return the informers."""
        return (*self.everything.all, self._sets)

    @asynccontextmanager
    async def looking(self) -> AsyncIterator[None]:
        """Keep diagnoses current in the body, while a browser shows a page."""
        self._lookers += 1
        self._stale.set()
        try:
            yield
        finally:
            self._lookers -= 1

    async def changed(self) -> None:
        """Wait for the next picture."""
        await self._shown.wait()

    async def until(self, check: Callable[[], T | None]) -> T:
        """Return the first result of `check` that is not None; it is called again for every new picture."""
        while (answer := check()) is None:
            await self.changed()
        return answer

    def paint(self) -> None:
        """Make a new picture; if that fails, the last one stays, and says since when it is out of date."""
        try:
            self.picture = self._painted()
        except Exception as error:  # anything may be stored in an object
            log.warning("the state could not be rendered", error=repr(error), exc_info=error)
            trouble = f"the state is outdated, because it cannot be rendered: {errorboundary.describe(error)}"
            self.picture = replace(self.picture, trouble=trouble, answered=self.picture.now)
        self.announce()

    def _painted(self) -> Picture:
        views = self.everything.views()
        picture = Picture(
            namespace=self.namespace,
            now=self.clock.now(),
            views=views,
            sets=[set_view(obj, views) for obj in sorted(self._sets.ask(), key=meta.key)],
            diagnoses=self._diagnoses,
            of_sets=self._of_sets,
            trouble=self._trouble,
            answered=self._answered,
            order=self._order,
            commands=self.commands,
        )
        if not self._order.may_change(picture.now):
            return picture
        items = [(place_of(item), item.diagnosis) for item in picture.ordered]
        self._order = arrange(self._order, items, picture.now)
        return replace(picture, order=self._order)

    def announce(self) -> None:
        """Wake those who wait for a picture."""
        self._shown.set()
        self._shown = asyncio.Event()

    def start(self) -> None:
        """Notice changes from now on."""
        for informer in self.followed:
            informer.subscribe(self._note)

    def relist(self) -> None:
        """Read everything again: the cluster may be another one."""
        for informer in self.followed:
            informer.relist(lambda: None)

    def _note(self, _: Change) -> None:
        self._changed.set()
        if self._trouble:
            self._stale.set()  # the API server responds again

    async def follow(self) -> None:
        """Make a new picture after every change; changes in quick succession share one."""
        while True:
            await self._changed.wait()
            await asyncio.sleep(TOGETHER)
            self._changed.clear()
            began = self.clock.monotonic()
            self.paint()
            self._stale.set()  # only now, as the diagnosis of a large set would delay the picture
            took = self.clock.monotonic() - began
            await asyncio.sleep(max(SHORTEST_PAUSE, min(3 * took, LONGEST_PAUSE)))

    async def keep_diagnosed(self) -> None:
        """Diagnose after changes, and every `AGAIN` seconds; without visitors, only until the API server responds again."""
        while True:
            with suppress(TimeoutError):
                async with timeouts.within(AGAIN):
                    await self._stale.wait()
            self._stale.clear()
            if self._lookers or self._trouble:
                await self.diagnose()
            await asyncio.sleep(BETWEEN_DIAGNOSES)

    async def diagnose(self) -> None:
        """Diagnose all sets that are not as wanted, reading each list once, and make a new picture."""
        views, sets = self.picture.views, self.picture.sets
        lists = Lists(self.client)
        now = self.clock.now()
        ill = [view for view in views if not is_as_desired(view, Selection(view.name), now)]
        try:
            async with timeouts.within(self._patience):
                diagnoses = await setdiagnoses.survey(lists, ill, self.namespace, self.commands, self.clock)
                of_sets = await setdiagnoses.diagnose_sets(lists, sets, self.namespace, self.commands, self.clock)
                await self.client.list_page(Query(LEADERWORKERSETS, self.namespace), limit=1)
        except Exception as error:  # likewise: the last diagnoses stay
            first = _first(error)
            if isinstance(first, KubeError | TimeoutError):
                reason = str(first) or f"no response within {self._patience:g} s"
                if isinstance(first, TimeoutError):
                    self._patience = min(2 * self._patience, LONGEST_PATIENCE)
                self._trouble = f"the state might be outdated, because the API server does not respond: {reason}"
            else:
                log.warning("diagnosis failed", error=repr(error), exc_info=error)
        else:
            if self._trouble:
                self.relist()  # a watch may wait long for its next try, or hang since the machine slept
            self._trouble, self._answered, self._patience = "", self.clock.now(), PATIENCE
            diagnoses = await self._with_evidence(diagnoses)
            self._diagnoses = {ObjectKey(diagnosis.namespace, diagnosis.target): diagnosis for diagnosis in diagnoses}
            self._of_sets = {ObjectKey(diagnosis.namespace, diagnosis.target): diagnosis for diagnosis in of_sets}
        self.paint()

    async def _with_evidence(self, diagnoses: Sequence[Diagnosis]) -> list[Diagnosis]:
        """Return diagnoses, the most urgent ones judged from logs and episodes; each run is read once."""
        urgent = {evidence.identity(diagnosis): diagnosis for diagnosis in ordered(diagnoses)[:BLOCKS]}
        known = {run: lines for run, lines in self._runs.items() if run in urgent}
        async with asyncio.TaskGroup() as tasks:
            reads = {
                run: tasks.create_task(evidence.find(self.client, diagnosis, self.read_episodes))
                for run, diagnosis in urgent.items()
                if run is not None and run not in known
            }
        self._runs = known | {run: lines for run, read in reads.items() if (lines := read.result()) is not None}
        return [evidence.with_run(diagnosis, self._runs.get(evidence.identity(diagnosis))) for diagnosis in diagnoses]


def _first(error: Exception) -> Exception:
    """Return the first error of a group: lists are read concurrently."""
    return _first(error.exceptions[0]) if isinstance(error, ExceptionGroup) else error


@asynccontextmanager
async def live(model: LiveModel, *beside: ChangeSource) -> AsyncIterator[None]:
    """Run a model in the body: it is filled and diagnosed once before. `beside` may end it with an error."""
    async with following(*model.followed, *beside), asyncio.TaskGroup() as tasks:
        model.start()
        model.paint()
        await model.diagnose()
        running = [tasks.create_task(model.follow()), tasks.create_task(model.keep_diagnosed())]
        try:
            yield
        finally:
            for task in running:
                task.cancel()
