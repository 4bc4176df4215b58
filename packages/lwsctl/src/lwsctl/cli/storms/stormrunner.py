"""Runs a storm in a local cluster. Requests each fault at its time, and watches the ranks.

The cluster stops each fault after its duration. The requests at the end or on Ctrl-C stop faults earlier.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import Final

import msgspec

from kuberuntime import timeouts
from kuberuntime.cache.informer import Change
from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request
from kuberuntime.clock import SystemClock
from kuberuntime.errors import KubeError, NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.texts.masking import mask_message
from lwsctl.cli import targets
from lwsctl.cli.cluster.target import Session
from lwsctl.cli.errors import CommandError
from lwsctl.cli.faultnames import FaultTarget
from lwsctl.cli.storms.report import ProbeCounts, StormReport, StormStep
from lwsctl.cli.storms.storm import Step
from lwsctl.cli.storms.stormeffects import rank_path
from lwsctl.cli.watchwarnings import following
from lwsctl.model.leaderworkerset import View
from lwsctl.observation.conditionwatch import AllSets, ConditionWatch

PATH: Final = "/localkube/faults"
BETWEEN_PROBES: Final = 0.2
PROBE_SECONDS: Final = 5.0
"""The timeout of a probe request in seconds."""

MOMENT: Final = 0.5
"""The time in seconds until the last fault has a visible effect. Then, the readiness of all ranks is checked."""


async def request_faults(client: Client, method: str, *, number: int = 0, body: JSONObject | None = None) -> JSONObject:
    """Return a connection to the fault injection of a local cluster. Other clusters do not support it."""
    path = f"{PATH}/{number}" if number else PATH
    try:
        response = await client.send(Request(method, path, body=msgspec.json.encode(body) if body else b""))
    except NotFoundError as error:
        raise CommandError(
            "faults can be injected only into local clusters; start one with `lws up`, and select it with --local"
        ) from error
    return msgspec.json.decode(response.body, type=JSONObject)


class StormRun:
    """A storm in a cluster."""

    def __init__(self, session: Session, tell: Callable[[str], None]) -> None:
        self.report = StormReport()
        self._session = session
        self._print = tell
        self._sets = AllSets(session.client, session.namespace, "")
        self._begun: list[int] = []
        self._began: float | None = None

    @property
    def ranks(self) -> list[str]:
        """Return the ranks in the namespace, in order."""
        return sorted(filter(None, map(rank_path, self._sets.pods.store.list())))

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[ConditionWatch]:
        """Watch ranks while the context is active. Then, undo the faults that are still active."""
        await request_faults(self._session.client, "GET")
        async with following(self._session.keepalive, *self._sets.all) as followed:
            self._sets.pods.subscribe(self._record_change)
            self._began = self._now()  # after this call, because a subscriber first receives existing objects
            try:
                yield followed
            finally:
                await self._undo()

    async def run(self, steps: Sequence[Step], settle: float, followed: ConditionWatch) -> None:
        """Run the steps. Then wait at most `settle` seconds until all previously ready ranks are ready again."""
        self.report.before = find_problems(self._sets.views(), SystemClock().now())
        async with asyncio.TaskGroup() as tasks:
            for step in steps:
                tasks.create_task(self._perform_step(step))
        ended = self._elapsed()
        await self._undo()
        await asyncio.sleep(MOMENT)
        with suppress(TimeoutError):
            async with timeouts.within(settle):
                await followed.wait_for(lambda: not self._new_problems() or None)
        self.report.unready = self._new_problems()
        if not self.report.unready:
            last = self.report.effects.without_ranks(self.report.before).last_ready()
            self.report.recovered = max(0.0, last - ended)

    async def probe(self, url: str) -> None:
        """Request a URL repeatedly until the task is cancelled."""
        import aiohttp

        counts = self.report.probe = ProbeCounts(mask_message(url))
        answered = self._now()
        is_out = False
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(PROBE_SECONDS)) as session:
            while True:
                counts.requests += 1
                try:
                    async with session.get(url) as response:
                        await response.read()
                    problem = f"status {response.status}" if response.status >= 500 else ""
                except (aiohttp.ClientError, OSError, TimeoutError) as error:
                    problem = str(error) or type(error).__name__
                if problem:
                    counts.failures += 1
                    counts.first_error = counts.first_error or problem
                if problem or is_out:
                    outage = (answered - (self._began or 0.0), self._elapsed())
                    counts.outages[-1 if is_out else len(counts.outages) :] = [outage]
                    counts.longest = max(counts.longest, outage[1] - outage[0])
                is_out = bool(problem)
                if not problem:
                    answered = self._now()
                await asyncio.sleep(BETWEEN_PROBES)

    async def _perform_step(self, step: Step) -> None:
        await asyncio.sleep(max(0.0, step.at - self._elapsed()))
        at = self._elapsed()
        try:
            body = {
                "kind": step.fault.name,
                "seconds": step.seconds,
                "targets": [self._target(step, target) for target in step.targets],
                "amount": step.amount,
                "path": step.path,
            }
            begun = await request_faults(self._session.client, "POST", body=body)
        except (CommandError, KubeError) as error:
            self.report.steps.append(StormStep(at, step, str(error)))
            self._print(f"{at:6.1f} s  {step} failed: {error}")
            return
        self._begun.append(begun["number"])
        self.report.steps.append(StormStep(at, step))
        self._print(f"{at:6.1f} s  {step}")
        await asyncio.sleep(step.seconds)

    def _target(self, step: Step, words: str) -> str:
        """Return the name of the target in the cluster. For a rank, this is the name of its current pod."""
        if step.fault.of is FaultTarget.NODE:
            return words
        selection = targets.parse(words)
        if selection.rank is None:
            raise CommandError(
                f"{words!r} is not a valid rank; use LWS/GROUP/RANK, such as {words.partition('/')[0]}/0/1"
            )
        for pod in self._sets.pods.store.list():
            if rank_path(pod) == str(selection):
                return str(meta.key(pod))
        raise CommandError(f"{words} has no pod; existing ranks: {', '.join(self.ranks) or 'none'}")

    async def _undo(self) -> None:
        numbers, self._begun = self._begun, []
        for number in numbers:
            with suppress(KubeError):  # the cluster and its faults have stopped
                await request_faults(self._session.client, "DELETE", number=number)

    def _record_change(self, change: Change) -> None:
        if self._began is not None:
            self.report.effects.record(self._elapsed(), change.old, change.new)

    def _new_problems(self) -> list[str]:
        problems = [text for view in self._sets.views() for text in remaining_problems(view)]
        return new_problems(problems, self.report.before)

    def _elapsed(self) -> float:
        return self._now() - (self._began or 0.0)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def find_problems(views: Iterable[View], now: datetime) -> list[str]:
    """Return the ranks, groups and sets with problems, and temporarily ready ranks of failed groups."""
    places: set[str] = set()
    for view in views:
        places |= {problem_location(text) for text in remaining_problems(view)}
        failing = [group for group in view.groups if group.crashes is not None and not group.crashes.are_over(now)]
        places |= {view.name} if failing else set()
        places |= {f"{view.name}/{group.name}" for group in failing}
        places |= {f"{view.name}/{rank.place}" for group in failing for rank in group.ranks}
    return sorted(places)


def new_problems(problems: Sequence[str], before: Sequence[str]) -> list[str]:
    """Return the problems of ranks, groups and sets that did not have problems before the storm.

    >>> new_problems(["web/0/1", "old/0/0", "old (0 of 2 groups ready)"], ["old", "old/0/0"])
    ['web/0/1']
    """
    return [text for text in problems if problem_location(text) not in before]


def problem_location(text: str) -> str:
    """Return the rank, group or set that has a problem."""
    return text.partition(" (")[0]


def remaining_problems(view: View) -> Iterator[str]:
    """Yield the remaining problems, which are groups waiting to be recreated, unready ranks, or a whole set."""
    waiting = [group.name for group in view.groups if group.recreations and group.recreations.is_waiting]
    yield from (f"{view.name}/{name} (waiting to be recreated)" for name in waiting)
    ranks = [rank for group in view.groups if group.name not in waiting for rank in group.ranks if not rank.is_ready]
    yield from (f"{view.name}/{rank.place}" for rank in ranks)
    if not view.is_ready and not waiting and not ranks:
        yield f"{view.name} ({view.ready} of {view.desired} groups ready)"
