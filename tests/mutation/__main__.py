"""Try the tests of the core with small errors: `python -m tests.mutation [MODULE ...] [--sample N] [--rules]`.

Each mutant (`mutants.py`) meets the unit tests of its module first, and where those pass all tests of the core.
Survivors are printed; docs/reference/mutation.md explains the known ones. Ends with 1 below 90 % killed.
"""

import os
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mutation import broken, trial
from tests.mutation.mutants import Mutant, mutants

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "packages/leaderworkerset/src"
CORE = SOURCE / "leaderworkerset" / "core"
UNIT = ROOT / "packages/leaderworkerset/tests/unit/leaderworkerset"
ALL = (UNIT / "core", UNIT / "controllers")
REQUIRED = 0.9


@dataclass(frozen=True, slots=True)
class Trial:
    """One mutant of one module."""

    path: Path
    mutant: Mutant

    @property
    def module(self) -> str:
        """Return the module's name."""
        return ".".join(self.path.relative_to(SOURCE).with_suffix("").parts)

    def __str__(self) -> str:
        return f"{self.path.relative_to(CORE)}:{self.mutant.line}: {self.mutant.change}"


def own_tests(module: Path) -> Path:
    """Return the tests that mirror a module, or those of its folder."""
    folder = UNIT / module.relative_to(SOURCE / "leaderworkerset").parent
    mirror = folder / f"test_{module.stem}.py"
    return mirror if mirror.exists() else folder


def select(arguments: Sequence[str]) -> list[Trial]:
    """Return the trials that the command line asks for."""
    wanted = [one for one in arguments if not one.startswith("-") and not one.isdigit()]
    paths = sorted(path for path in CORE.rglob("*.py") if not wanted or path.stem in wanted)
    found = [Trial(path, mutant) for path in paths for mutant in mutants(path.read_text())]
    if "--sample" not in arguments:
        return found
    count = int(arguments[arguments.index("--sample") + 1])
    return random.Random(0).sample(found, min(count, len(found)))


def broken_rules() -> list[Trial]:
    """Return the trials of rules that are broken on purpose."""
    found = []
    for one in broken.RULES:
        source = (CORE / one.module).read_text()
        assert source.count(one.before) == 1, f"{one.rule}: {one.module} does not hold {one.before!r} once"
        mutant = Mutant(0, f"{one.rule} is broken", source.replace(one.before, one.after))
        found.append(Trial(CORE / one.module, mutant))
    return found


def alive(trials: Sequence[Trial], tests: Sequence[Path] | None) -> Iterator[Trial]:
    """Yield the trials whose mutants pass the tests, their own or the given ones; as many at a time as there are CPUs."""
    running: list[tuple[Trial, int]] = []
    for one in trials:
        running.append(
            (one, trial.start(one.module, one.mutant.source, (own_tests(one.path),) if tests is None else tests))
        )
        if len(running) >= (os.cpu_count() or 1):
            yield from _finish(running)
    while running:
        yield from _finish(running)


def _finish(running: list[tuple[Trial, int]]) -> Iterator[Trial]:
    one, child = running.pop(0)
    if trial.survived(child):
        yield one


def main(arguments: Sequence[str]) -> int:
    """Run the command line."""
    trials = broken_rules() if "--rules" in arguments else select(arguments)
    sys.path[:0] = [str(SOURCE), str(ROOT)]
    survivors = []
    for one in alive(list(alive(trials, None)), ALL):
        survivors.append(one)
        sys.stdout.write(f"survived {one}\n")
        sys.stdout.flush()
    killed = len(trials) - len(survivors)
    sys.stdout.write(f"{killed} of {len(trials)} mutants killed ({100 * killed / max(len(trials), 1):.1f} %)\n")
    return 0 if killed >= REQUIRED * len(trials) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
