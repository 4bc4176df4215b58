"""Measures the time of decisions about the largest objects, its growth, and the event loop delay.

python -m bench.core decisions [--all | --shape SHAPE ...] [--bytes 1572864]

It tries the shapes in which a usual LeaderWorkerSet grows, and with `--all` every shape, which takes many minutes.

growth   the processor seconds of every decision of the core and every admission webhook, in every shape, at half the
         size and at the whole size. The program reports a decision whose time grows by more than 2.2, and exits with
         code 1 (`packages/leaderworkerset/tests/property/growth` tests the same in executed lines)
stall    the longest time for which the event loop was blocked while a thread decided about one object of the whole
         size, as in `lws manager`. The minimum is the longest call that runs in C (one JSON text of the object)
"""

import argparse
import asyncio
import json
import time
from functools import partial

from bench.record import machine, report, run
from testkit import work
from tests import builders
from tests.decisions import reconcile
from tests.property.growth.recipes import RECIPES
from tests.property.growth.shapes import SHAPES, LargeSet

LARGEST = 1536 * 1024
USUAL = ("groups", "long texts", "pods", "variables")
"""The default shapes, two of which have many objects, and two of which have a large object."""

MOST = 2.2
SLACK = 0.002
ATTEMPTS = 4


def decisions() -> None:
    """Measure the decisions about the largest objects that an API server stores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, default=LARGEST)
    shape_options = parser.add_mutually_exclusive_group()
    shape_options.add_argument("--all", action="store_true", help="try every shape")
    shape_options.add_argument("--shape", action="append", choices=SHAPES)
    options = parser.parse_args()
    print(json.dumps(machine()), flush=True)
    shapes = SHAPES if options.all else options.shape or USUAL
    grown = [name for shape in shapes for name in measure(shape, options.bytes)]
    if grown:
        raise SystemExit(f"grows by more than {MOST} if the input doubles: {', '.join(grown)}")


def measure(shape: str, size: int) -> list[str]:
    """Measure one shape. Return the decisions that grow too fast."""
    largest = of_size(shape, size)
    half = LargeSet(shape, largest.n // 2)
    growths = {name: growth(name, half, largest) for name in RECIPES}
    slowest = max(growths, key=lambda name: growths[name][0])
    grown = {name: round(ratio, 2) for name, (_, ratio) in growths.items() if ratio > MOST}
    report(
        "decisions",
        shape=shape,
        count=largest.n,
        bytes=len(json.dumps(largest.posted)),
        slowest=slowest,
        slowest_ms=round(1000 * growths[slowest][0], 1),
        reconcile_ms=round(1000 * work.seconds(partial(reconcile, largest.observed, builders.NOW)), 1),
        stall_ms=round(1000 * asyncio.run(stall(largest)), 1),
        grown=grown,
    )
    return [f"{name} ({shape})" for name in grown]


def of_size(shape: str, size: int) -> LargeSet:
    """Return the world in which the LeaderWorkerSet or other objects have this size in bytes."""
    number = 1000
    full = len(json.dumps(LargeSet(shape, number).posted))
    empty = len(json.dumps(LargeSet(shape, 2).posted))
    each = max((full - empty) / number, SHAPES[shape])
    return LargeSet(shape, int(size / each))


def growth(name: str, half: LargeSet, largest: LargeSet) -> tuple[float, float]:
    """Return the CPU time of a decision at the full size, and its growth from half the size."""
    calls = [partial(RECIPES[name], world) for world in (half, largest)]
    for call in calls:
        call()
    once, twice = (work.seconds(call, 1) for call in calls)
    for _ in range(ATTEMPTS):
        if twice <= MOST * once + SLACK:
            break
        once, twice = min(once, work.seconds(calls[0])), min(twice, work.seconds(calls[1]))
    return twice, twice / (once + SLACK / MOST)


async def stall(world: LargeSet) -> float:
    """Return the maximum CPU time between two iterations of the event loop during one decision in a thread."""
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        before = time.process_time()
        while True:
            await asyncio.sleep(0)
            now = time.process_time()
            longest, before = max(longest, now - before), now

    async with asyncio.TaskGroup() as group:
        watching = group.create_task(watch())
        await asyncio.sleep(0.01)
        await asyncio.to_thread(reconcile, world.observed, builders.NOW)
        await asyncio.sleep(0.01)
        watching.cancel()
    return longest


BENCHMARKS = {"decisions": decisions}

if __name__ == "__main__":
    run("core", BENCHMARKS)
