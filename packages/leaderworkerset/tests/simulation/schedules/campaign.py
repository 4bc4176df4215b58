"""Plays many schedules in one process, and compares the results with newly created sets."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec
from testkit.virtualtime import SingleThreadLoop, run
from tests.simulation.cluster import Settings, without_logs
from tests.simulation.faults import Schedule
from tests.simulation.schedules import lean, planted
from tests.simulation.schedules.clocks import play_clocks
from tests.simulation.schedules.crashes import play_crashes
from tests.simulation.schedules.forking import Send, branch
from tests.simulation.schedules.gangs import play_gangs
from tests.simulation.schedules.inplace import play_in_place
from tests.simulation.schedules.lean import LeanCluster
from tests.simulation.schedules.misuse import play_misuse
from tests.simulation.schedules.moving import play_moves
from tests.simulation.schedules.playing import Verdict, caught, play_family, play_reference
from tests.simulation.schedules.randomkeys import play_random_keys
from tests.simulation.states import differences
from tests.simulation.trace import Trace

MISUSE: Final = "misuse"
"""The name prefix of families with modified specs."""

CLOCKS: Final = "clocks"
"""The name prefix of families with two managers whose clocks are set."""

RANDOM_KEYS: Final = "keys"
"""The name prefix of families with random group keys."""

GANGS: Final = "gangs"
"""The name prefix of families with `spec.scheduling`."""

IN_PLACE: Final = "in place"
"""The name prefix of families with in-place updates."""

MOVES: Final = "moves"
"""The name prefix of families whose groups are moved off closed nodes."""

KINDS: Final = {
    MISUSE: play_misuse,
    CLOCKS: play_clocks,
    RANDOM_KEYS: play_random_keys,
    GANGS: play_gangs,
    IN_PLACE: play_in_place,
    MOVES: play_moves,
}
"""The functions that play families, by name prefix."""

BRANCHES: Final = 20
"""A number of schedules of one family."""


@dataclass
class Summary:
    """The combined results of schedules."""

    schedules: int = 0
    writes: int = 0
    steps: int = 0
    recreations: int = 0
    seconds: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    happened: Counter[str] = field(default_factory=Counter)
    states: set[bytes] = field(default_factory=set)
    violations: list[Verdict] = field(default_factory=list)

    def add(self, verdict: Verdict) -> None:
        """Count one verdict."""
        self.schedules += 1
        self.writes += verdict.writes
        self.steps += verdict.steps
        self.recreations += verdict.recreations
        self.seconds += verdict.seconds
        self.faults.update(verdict.faults)
        self.happened.update(verdict.happened)
        self.states.add(verdict.declared)
        if verdict.violations:
            self.violations.append(verdict)

    def lines(self) -> Iterator[str]:
        """Return a human-readable description."""
        yield (
            f"{self.schedules} schedules of {self.seconds / 3600:.1f} virtual hours: {self.writes} writes,"
            f" {self.steps} changes checked, {self.recreations} recreations, {len(self.states)} different ends"
        )
        yield "happened: " + _counts(self.happened)
        yield "faults: " + _counts(self.faults)
        yield f"violations: {len(self.violations)}"


class References:
    """The final states of newly created sets, by declared objects. Each state is computed once."""

    def __init__(self, world: LeanCluster) -> None:
        self._world = world
        self._known: dict[bytes, bytes] = {}

    async def compare(self, verdict: Verdict) -> Verdict:
        """Add the differences between the final state of a verdict and a newly created set."""
        if verdict.violations or not verdict.declared or is_held_back(verdict.declared):
            return verdict
        known = self._known.get(verdict.declared)
        if known is None:
            known = self._known[verdict.declared] = await self._create(verdict.declared)
        if known == verdict.final:
            return verdict
        found = differences(msgspec.json.decode(known), msgspec.json.decode(verdict.final))
        return msgspec.structs.replace(verdict, violations=["a fresh creation and this end differ:", *found])

    async def _create(self, declared: bytes) -> bytes:
        found: list[bytes] = []

        async def work(send: Send) -> None:
            await play_reference(self._world, declared, send)

        await branch(work, found.append)
        return found[0]


@dataclass(frozen=True)
class Part:
    """The unit of a campaign: branches of families, optionally with a planted bug."""

    families: Sequence[int | str]
    """The names of families.

    A name is the number of a random family, a scenario with a crash at every write, or a prefix with a number. The
    prefixes are `misuse`, `clocks`, `keys`, `gangs`, `in place` and `moves`.
    """
    branches: Sequence[int]
    """The number of branches of each family.

    A named scenario with one branch has no crashes, and with several branches it has all of them.
    """
    bug: str | None = None


async def play_all(world: LeanCluster, part: Part, references: References) -> AsyncIterator[Verdict]:
    """Play the branches of every family, and yield the verdicts.

    A bug is planted in the branches, but not in the references.
    """
    for family in part.families:
        verdicts: list[Verdict] = []

        async def work(send: Send, family: int | str = family) -> None:
            violations: list[str] = []
            with planted.bug(part.bug), caught(world, violations):
                await _play(world, family, part.branches, send)
            if violations:  # violations in the part that all branches share
                send(msgspec.json.encode(Verdict(seed=f"{family}.0", violations=violations, trace=str(world.trace))))

        await branch(work, lambda message: verdicts.append(msgspec.json.decode(message, type=Verdict)))  # noqa: B023 - used before the next
        for verdict in verdicts:
            yield await references.compare(verdict)


async def _play(world: LeanCluster, family: int | str, branches: Sequence[int], send: Send) -> None:
    """Play branches of a family by its name. A name without a prefix is a scenario with crashes."""
    if isinstance(family, int):
        await play_family(world, family, branches, send)
        return
    for kind, play_kind in KINDS.items():
        if family.startswith(kind):
            await play_kind(world, family, branches, send)
            return
    await play_crashes(world, family, send, deaths=len(branches) > 1)


def campaign(parts: Iterable[Part], each: Callable[[Part, Verdict], bool]) -> None:
    """Play a number of parts in a cluster of this process. A part stops when `each` returns False."""

    async def body(directory: Path) -> None:
        async with lean.running(Settings(managers=(), others=Schedule()), Trace(), directory) as world:
            references = References(world)
            for part in parts:
                async for verdict in play_all(world, part, references):
                    if not each(part, verdict):
                        break

    with TemporaryDirectory() as directory, without_logs():
        run(body(Path(directory)), SingleThreadLoop)


def is_held_back(declared: bytes) -> bool:
    """Return whether a partition retains groups of the previous revision.

    A newly created set does not have such groups.
    """
    spec = msgspec.json.decode(declared)["spec"]
    rolling = (spec.get("rolloutStrategy") or {}).get("rollingUpdateConfiguration") or {}
    return bool(rolling.get("partition"))


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counter.most_common()) or "none"
