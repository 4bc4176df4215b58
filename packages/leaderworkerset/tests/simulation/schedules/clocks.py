"""Runs two managers, and sets the wall clocks of all machines or of one manager by an hour.

The families are those of `playing.py`, always with two managers. Clocks are set in every schedule. Usually groups also
fail and a manager loses its lease or dies, so that one manager continues with records of another clock.
"""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Final

from tests.simulation.schedules import happenings
from tests.simulation.schedules.forking import Send
from tests.simulation.schedules.lean import LeanCluster
from tests.simulation.schedules.play import Happening, Play
from tests.simulation.schedules.playing import (
    Verdict,
    draw_leaderworkerset,
    draw_script,
    play,
    play_branches,
    start_managers,
)

MANAGERS: Final = 2
HOUR: Final = 3600.0

BEFORE: Final = (0.0, 0.3, 2.0, 5.0, 12.0)
"""The delay in seconds before a clock is set.

A leader renews its lease every two seconds, and another manager acquires it after fifteen.
"""


async def set_clocks(play: Play) -> None:
    """Set the wall clocks of all machines."""
    seconds = play.random.choice((-HOUR, HOUR))
    play.note("machine", "moves the clock by", f"{seconds:.0f} s")
    play.world.clock.jump += seconds


async def set_clock_of_manager(play: Play) -> None:
    """Set the wall clock of one manager's machine. The time remains set after a restart of the manager."""
    name = play.random.choice(sorted(play.world.managers))
    seconds = play.random.choice((-HOUR, 0.0, HOUR))
    play.note("machine", f"sets the clock of {name} off by", f"{seconds:.0f} s")
    play.world.clocks[name].skew = seconds


SET: Final[Sequence[Happening]] = (set_clocks, set_clock_of_manager, set_clock_of_manager)
CHANGES_OF_LEADER: Final[Sequence[Happening]] = (happenings.estrange_leader, happenings.kill_manager)
FAILURES: Final[Sequence[Happening]] = (
    happenings.restart_container, happenings.fail_twice, happenings.crash_loop, happenings.delete_pod,
)  # fmt: skip
"""Failures after which groups are recreated with a recorded back-off time."""


def draw(random: Random) -> list[tuple[float, Happening]]:
    """Select the usual events of a schedule, clock changes, failed groups and leader changes."""
    picked = happenings.draw(random)
    added: list[Happening] = [random.choice(SET) for _ in range(random.choice((1, 2, 3)))]
    added += [random.choice(CHANGES_OF_LEADER) for _ in range(random.choice((0, 1, 1, 2)))]
    added += [random.choice(FAILURES) for _ in range(random.choice((0, 1, 2)))]
    for one in added:
        picked.insert(random.randint(0, len(picked)), (random.choice(BEFORE), one))
    return picked


async def play_clocks(world: LeanCluster, name: str, branches: Sequence[int], send: Send) -> None:
    """Play branches of a family, and send every verdict."""
    world.reseed(name)
    random = Random(name)
    lws = draw_leaderworkerset(random)
    creates = random.random() < 1 / 3
    start_managers(world, MANAGERS)
    if not creates:
        await world.create(lws)
    await world.at_rest()

    async def one(seed: str) -> Verdict:
        random = Random(seed)
        script = draw_script(random, MANAGERS, lws if creates else None)
        return await play(world, seed, replace(script, picked=draw(random)))

    await play_branches(name, branches, send, one)
