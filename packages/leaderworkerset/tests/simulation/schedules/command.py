"""Defines the command that plays schedules, prints progress, and prints a summary."""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from tests.simulation.schedules import crashes, planted
from tests.simulation.schedules.campaign import (
    BRANCHES,
    CLOCKS,
    GANGS,
    IN_PLACE,
    MISUSE,
    MOVES,
    RANDOM_KEYS,
    Part,
    Summary,
    campaign,
)
from tests.simulation.schedules.forking import BranchError
from tests.simulation.schedules.playing import Verdict
from tests.simulation.schedules.processes import play_in_parallel

HUNTED: Final = 4
"""The number of schedules of a family in which a bug is searched for."""

PROGRESS: Final = 10.0
"""The interval in seconds between two progress lines."""


def main(arguments: Sequence[str]) -> int:
    """Play schedules, and return 1 if an invariant is violated."""
    options = _parser().parse_args(arguments)
    if options.seed:
        return _replay(options.seed, options.bug)
    return _hunt(options) if options.hunt else _play(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation", description="Run simulated schedules, and print violations."
    )
    parser.add_argument("--seeds", type=int, default=200, help="the number of random schedules")
    parser.add_argument("--first", type=int, default=1, help="the number of the first family of seeds")
    parser.add_argument("--seed", help="run only this schedule (FAMILY.BRANCH), and print its trace")
    parser.add_argument(
        "--crashes",
        nargs="*",
        choices=list(crashes.SCENARIOS),
        metavar="SCENARIO",
        help="scenarios to repeat with each crash. The default is all scenarios",
    )
    parser.add_argument("--misuse", type=int, default=0, help="the number of schedules with misuse")
    parser.add_argument("--clocks", type=int, default=0, help="the number of schedules with changed clocks")
    parser.add_argument("--keys", type=int, default=0, help="the number of schedules with random keys")
    parser.add_argument("--gangs", type=int, default=0, help="the number of schedules with spec.scheduling")
    parser.add_argument("--in-place", type=int, default=0, help="the number of schedules with updates in place")
    parser.add_argument("--moves", type=int, default=0, help="the number of schedules with cordoned nodes")
    parser.add_argument("--processes", type=int, default=2, help="the number of parallel processes")
    parser.add_argument("--bug", choices=sorted(planted.BUGS), metavar="NAME", help="add a planted bug to the product")
    parser.add_argument("--hunt", action="store_true", help="search for all planted bugs, or for the bug of --bug")
    return parser


def _replay(seed: str, bug: str | None) -> int:
    """Play one schedule and print its events. With a crash, print only this crash of its scenario."""
    family, _, number = seed.partition(".")
    found: list[Verdict] = []

    def each(_part: Part, verdict: Verdict) -> bool:
        if verdict.seed == seed:
            found.append(verdict)
        return True

    branches = [int(number)] if number.isdigit() else range(2)
    campaign([Part([int(family) if family.isdigit() else family], branches, bug)], each)
    for verdict in found:
        print(verdict.trace, *_report(verdict), sep="\n")  # noqa: T201
    return int(any(verdict.violations for verdict in found))


def _hunt(options: argparse.Namespace) -> int:
    """Find every planted bug with its known schedule, or with at most the given number of other schedules."""
    families = range(options.first, options.first + max(options.seeds // HUNTED, 1))
    bugs = [options.bug] if options.bug else list(planted.BUGS)
    played: Counter[str] = Counter()
    found: dict[str, Verdict] = {}

    def parts() -> Iterator[Part]:
        for name in bugs:
            family, _, number = planted.BUGS[name].seed.partition(".")
            one = int(number)
            if family.isdigit():
                known = Part([int(family)], [one], name)
            else:  # a scenario, undisturbed or with all crashes, or a family of a different kind
                known = Part([family], range(1 + one) if family in crashes.SCENARIOS else [one], name)
            for part in (known, Part(list(crashes.SCENARIOS), [0], name), Part(families, range(HUNTED), name)):
                if name not in found:
                    yield part

    def each(part: Part, verdict: Verdict) -> bool:
        name = str(part.bug)
        played[name] += 1
        if verdict.violations and name not in found:
            found[name] = verdict
            print(f"{name}: schedule {played[name]}, seed {verdict.seed}: {verdict.violations[0]}", flush=True)  # noqa: T201
        return name not in found

    campaign(parts(), each)
    missed = [name for name in bugs if name not in found]
    print(f"{len(found)} of {len(bugs)} planted bugs were found; missed: {', '.join(missed) or 'none'}")  # noqa: T201
    return int(bool(missed))


def _play(options: argparse.Namespace) -> int:
    families: list[int | str] = []
    if options.crashes is not None:
        families += options.crashes or list(crashes.SCENARIOS)
    families += range(options.first, options.first + -(-options.seeds // BRANCHES))
    kinds = {
        MISUSE: options.misuse,
        CLOCKS: options.clocks,
        RANDOM_KEYS: options.keys,
        GANGS: options.gangs,
        IN_PLACE: options.in_place,
        MOVES: options.moves,
    }
    for kind, schedules in kinds.items():
        families += [f"{kind}{options.first + number}" for number in range(-(-schedules // BRANCHES))]
    summary, started = Summary(), time.monotonic()
    shown, is_whole = started, True
    try:
        for verdict in play_in_parallel(Part(families, range(BRANCHES), options.bug), options.processes):
            summary.add(verdict)
            if verdict.violations:
                print(*_report(verdict), sep="\n", flush=True)  # noqa: T201
            if time.monotonic() - shown > PROGRESS:
                shown = time.monotonic()
                _progress(summary, shown - started)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)  # noqa: T201
    except BranchError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        is_whole = False
    seconds = time.monotonic() - started
    print(*summary.lines(), f"{summary.schedules / seconds * 60:.0f} schedules per minute", sep="\n")  # noqa: T201
    return int(bool(summary.violations) or not is_whole)


def _progress(summary: Summary, seconds: float) -> None:
    rate = summary.schedules / seconds * 60
    text = f"{summary.schedules} schedules, {rate:.0f} per minute, {len(summary.violations)} violations"
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def _report(verdict: Verdict) -> list[str]:
    """Return a human-readable description of a verdict."""
    if not verdict.violations:
        return [f"seed {verdict.seed}: no violations"]
    again = f"to print the trace, run: make simulate SEED={verdict.seed}"
    return [
        f"seed {verdict.seed} ({', '.join(verdict.happened)}), {again}",
        *(f"  {one}" for one in verdict.violations[:12]),
    ]
