"""Selects the faults of a random schedule, for the transports of managers and other controllers."""

from random import Random
from typing import Final

from tests.simulation.faults import Death, Fault, Schedule

LATENCIES: Final = ((0.001, 0.02), (0.001, 0.02), (0.001, 0.1), (0.01, 0.6))
SLOW_LATENCIES: Final = ((0.001, 0.02), (0.001, 0.02), (0.001, 0.1), (0.1, 1.5))
WRITES: Final = 14
"""The number of writes among which faults and crashes are distributed."""

CALM: Final = Schedule(latency=LATENCIES[0])


def draw_manager(random: Random) -> Schedule:
    """Select the faults of a manager. There are often none or few, and sometimes the manager crashes."""
    kind = random.random()
    faults = {random.randint(1, WRITES): random.choice(tuple(Fault)) for _ in range(random.choice((0, 0, 1, 2, 4)))}
    return Schedule(
        latency=random.choice(LATENCIES),
        faults=faults,
        rate=random.choice((0.0, 0.0, 0.0, 0.05, 0.2)),
        crash_after=random.randint(1, WRITES) if kind < 0.35 else None,
        death=random.choice(tuple(Death)),
        cuts=tuple(random.uniform(0.0, 8.0) for _ in range(random.choice((0, 0, 1, 3)))),
        repeats=random.choice((0.0, 0.0, 0.0, 0.2)),
    )


def draw_others(random: Random) -> Schedule:
    """Select the faults of the StatefulSet controller and the garbage collector, which may be slow."""
    return Schedule(latency=random.choice(SLOW_LATENCIES), rate=random.choice((0.0, 0.0, 0.05)))
