"""Tests the arithmetic of rollouts with random sizes, budgets, changed targets and reverts.

`DISAGGREGATED_ROLLOUTS=50000` in the environment tries so many instead of the few of every day.
"""

import os
from random import Random
from typing import Final

from msgspec.structs import replace

from leaderworkerset.core.disaggregatedset.planner import (
    PlannerStep,
    RoleState,
    State,
    apply_step,
    batch_count,
    is_done,
    next_step,
)

ROLLOUTS: Final = int(os.environ.get("DISAGGREGATED_ROLLOUTS", "600"))
LONGEST: Final = 300
BUDGETS: Final = ((1, 0), (2, 0), (3, 0), (1, 1), (2, 2), (0, 1), (0, 2), (0, 3))


def begin(random: Random) -> State:
    """Return a rollout of two to four roles at its start."""
    sizes = [
        (random.randint(0, 12), random.randint(0, 12), *random.choice(BUDGETS)) for _ in range(random.randint(2, 4))
    ]
    return tuple(RoleState(initial, initial, 0, target, *budget) for initial, target, *budget in sizes)


def disturb(random: Random, state: State) -> State:
    """Change the target of one role, or reverse the rollout. The new revision then becomes the old one."""
    if random.random() < 0.3:
        return tuple(replace(role, initial=role.new, old=role.new, new=role.old) for role in state)
    index = random.randrange(len(state))
    changed = replace(state[index], target=random.randint(0, 12))
    return (*state[:index], changed, *state[index + 1 :])


def check(state: State, step: PlannerStep) -> None:
    """Assert the requirements of every step (R-DS-55 to R-DS-61)."""
    after = apply_step(state, step)
    steps = batch_count(state)
    for role, now in zip(state, after, strict=True):
        assert now.old <= role.old
        assert now.new >= role.new
        if role.has_min_groups and now.old < role.old:
            assert now.old + role.new >= min(role.min_groups, role.old + role.new), (
                "ready groups are fewer than the floor"
            )
        if now.new > role.new:
            assert now.old + now.new <= role.target + max(role.surge, 1), "groups are more than the ceiling"
    if step.new != tuple(role.new for role in state):
        slowest = min(min(steps, role.new * steps // role.target) for role in state if role.target)
        ahead = [-(-(slowest + 1) * role.target // steps) for role in state]
        assert all(now.new <= max(role.new, most) for role, now, most in zip(state, after, ahead, strict=True))
        assert all(now.new > 0 for now in after if now.target), "a new role stands alone"
    emptied = [now for role, now in zip(state, after, strict=True) if role.old > 0 and now.old == 0]
    assert not emptied or not any(now.old for now in after), "an old role stands alone"


def live(seed: int) -> int:
    """Run one rollout to completion with up to three disruptions, and return its number of steps."""
    random = Random(seed)
    state, disturbances = begin(random), random.randint(0, 3)
    for number in range(LONGEST):
        step = next_step(state)
        if step is None:
            assert is_done(state)
            return number
        check(state, step)
        assert apply_step(state, step) != state, "a step that changes nothing"
        state = apply_step(state, step)
        if disturbances and random.random() < 0.1:
            state, disturbances = disturb(random, state), disturbances - 1
    raise AssertionError(f"no end: {state}")


def test_role_rollout_keeps_bounds_and_ends() -> None:
    """A rollout of roles respects its limits and completes (R-DS-55 to R-DS-61, Q-6)."""
    steps = 0
    for seed in range(ROLLOUTS):
        try:
            steps += live(seed)
        except AssertionError as error:
            raise AssertionError(f"rollout {seed}: {error}") from error
    assert steps > 4 * ROLLOUTS
