"""Tests the limits and the completion of DisaggregatedSet rollouts during scaling, failures and reverts.

`DISAGGREGATED_ROLLOUTS=50000` in the environment makes so many rollouts instead of the few of every day;
`python -m tests.property.disaggregation` does so with progress.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from tests.property.disaggregation.fleetworld import NAMES, ModeledFleet

from kuberuntime.objects import meta
from kuberuntime.objects.meta import ObjectKey

ROLLOUTS: Final = int(os.environ.get("DISAGGREGATED_ROLLOUTS", "100"))
EVENTS: Final = 6
"""The number of events in one history."""
PASSES: Final = 400
"""The number of passes until the system must be stable."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts rollouts, passes, and passes that removed or added groups, over several histories."""

    rollouts: int = 0
    passes: int = 0
    drains: int = 0
    raises: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        """Return the sum of both counts."""
        return Counts(
            self.rollouts + other.rollouts,
            self.passes + other.passes,
            self.drains + other.drains,
            self.raises + other.raises,
        )

    def __str__(self) -> str:
        return f"{self.rollouts} rollouts, {self.passes} passes, {self.drains} drains, {self.raises} raises"


def happen(world: ModeledFleet) -> None:
    """Make one random change to the set."""
    random = world.random
    match random.randrange(8):
        case 0 | 1:
            world.set_image(random.randint(1, 4))
        case 2:
            world.resize(random.choice(list(world.roles)), random.randint(1, 9))
        case 3:
            world.broken = {world.revision} if random.random() < 0.5 else set()
        case 4 if len(world.roles) > 2:
            del world.roles[random.choice(list(world.roles))]
        case 5 if len(world.roles) < len(NAMES):
            name = random.choice([name for name in NAMES if name not in world.roles])
            world.roles[name] = world.new_role(name)
        case 6 if world.leaderworkersets:
            del world.leaderworkersets[random.choice(sorted(world.leaderworkersets))]
        case _:
            world.step(actions=random.randint(0, 3))


def come_to_rest(world: ModeledFleet) -> None:
    """Make groups ready without further changes, and assert that the set matches its spec."""
    world.broken = set()
    for _ in range(PASSES):
        world.tick()
        if not world.step():
            break
    else:
        raise AssertionError(f"not at rest after {PASSES} passes: {world.parts}")
    sizes = {part.role: part.replicas for part in world.parts}
    assert {part.revision for part in world.parts} == {world.revision}
    external = {name for name, one in world.roles.items() if one.get("scaling")}
    wanted = {name: one["spec"]["replicas"] for name, one in world.roles.items()}
    scaled = {name: meta.spec(world.scalers[ObjectKey("default", f"split-{name}")])["replicas"] for name in external}
    assert sizes == wanted | scaled


def live(seed: int) -> Counts:
    """Run one complete history."""
    world = ModeledFleet(Random(seed))
    come_to_rest(world)
    for _ in range(EVENTS):
        happen(world)
        for _ in range(world.random.randint(0, 6)):
            world.tick()
            world.step()
    come_to_rest(world)
    return Counts(world.rollouts, world.time, world.drains, world.raises)


def test_rollout_of_roles_keeps_bounds_at_every_step(record_property: Callable[[str, object], None]) -> None:
    """Rollouts preserve ratio and availability, and respect the maximum size.

    Unready groups are awaited, not drained (R-DS-55 to R-DS-61, Q-3 to Q-8).

    Unready groups are awaited, not drained (R-DS-55 to R-DS-61, Q-3 to Q-8).
    """
    counts, seed = Counts(), 0
    while counts.rollouts < ROLLOUTS:
        seed += 1
        try:
            counts += live(seed)
        except AssertionError as error:
            raise AssertionError(f"history {seed}: {error}") from error
    record_property("rollouts", counts.rollouts)
    assert counts.drains > counts.rollouts
    assert counts.raises > counts.rollouts
