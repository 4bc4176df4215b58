"""Tests coordinated rollouts against recorded rollouts of the Go controller, and the differences."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from leaderworkerset.core.disaggregatedset.planner import (
    PlannerStep,
    RoleState,
    State,
    apply_step,
    batch_count,
    is_done,
    next_step,
    simulate,
    upstream_step,
)

VECTORS = json.loads((Path(__file__).parents[4] / "vectors" / "ds-planner-vectors.json").read_text())
ROLLOUTS = [vector for vector in VECTORS if vector["kind"] == "full_rollout"]
STEPS = [vector for vector in VECTORS if vector["kind"] == "single_step"]


def state_of(vector: dict[str, Any]) -> State:
    nothing = [0] * len(vector["target"])
    return tuple(
        RoleState(initial, old, new, target, config["surge"], config["unavailable"])
        for initial, old, new, target, config in zip(
            vector["initial_old"],
            vector.get("current_old", vector["initial_old"]),
            vector.get("current_new", nothing),
            vector["target"],
            vector["config"],
            strict=True,
        )
    )


def recorded(entries: Iterable[dict[str, list[int]]]) -> list[PlannerStep]:
    return [PlannerStep(tuple(entry["old"]), tuple(entry["new"])) for entry in entries]


def rollout_of_the_go_controller(state: State) -> list[PlannerStep]:
    """Apply all steps, each with immediate success."""
    steps = [PlannerStep(tuple(role.old for role in state), tuple(role.new for role in state))]
    while (step := upstream_step(state)) is not None:
        steps.append(step)
        state = apply_step(state, step)
    return steps


def text(steps: Iterable[PlannerStep]) -> str:
    """Print a rollout in the notation of the contract."""
    return " ".join(f"{','.join(map(str, step.old))}/{','.join(map(str, step.new))}" for step in steps)


def roles(counts: Sequence[tuple[int, int]], *, surge: int = 1, unavailable: int = 0) -> State:
    """Return the start of a rollout with these old and new sizes."""
    return tuple(RoleState(initial, initial, 0, target, surge, unavailable) for initial, target in counts)


def test_recorded_vectors_are_complete() -> None:
    assert (len(ROLLOUTS), len(STEPS)) == (323, 700)


def test_upstream_rollouts_equal_the_recorded_ones() -> None:
    """Upstream rollouts equal the recorded rollouts (R-DS-44 to R-DS-54)."""
    wrong = [one["id"] for one in ROLLOUTS if rollout_of_the_go_controller(state_of(one)) != recorded(one["expect"])]
    assert wrong == []


def test_upstream_steps_equal_the_recorded_ones() -> None:
    """The cases include partial rollouts and deadlocks (R-DS-44 to R-DS-53)."""
    for vector in STEPS:
        step = upstream_step(state_of(vector))
        expected = vector["expect"] and recorded([vector["expect"]])[0]
        assert step == expected, vector["id"]


def test_rollouts_equal_upstream_when_every_role_may_surge() -> None:
    """No limit applies in this case, so the result is the same as in upstream (docs/adr/0011)."""
    surging = [one for one in ROLLOUTS if all(config["surge"] >= 1 for config in one["config"])]
    assert len(surging) > 150
    wrong = [one["id"] for one in surging if list(simulate(state_of(one))) != recorded(one["expect"])]
    assert wrong == []


def test_rollout_without_surge_uses_the_unavailable_groups() -> None:
    """Two groups are replaced at a time (contract 10, W8). The recorded rollouts contain the other worked examples."""
    steps = simulate(roles([(4, 4), (4, 4)], surge=0, unavailable=2))
    assert text(steps) == "4,4/0,0 2,2/0,0 2,2/2,2 0,0/2,2 0,0/4,4"


def test_groups_drain_only_after_their_successors_are_ready() -> None:
    """The Go controller scales from 1,1/7,2 to 0,0/8,2, and runs with 7 of at least 8 groups (R-DS-61)."""
    state = (RoleState(9, 1, 7, 9, 0, 1), RoleState(2, 1, 2, 2, 0, 1))
    assert upstream_step(state) == PlannerStep((0, 0), (8, 2))
    assert next_step(state) == PlannerStep((1, 1), (8, 2))
    assert next_step(apply_step(state, PlannerStep((1, 1), (8, 2)))) == PlannerStep((0, 0), (8, 2))


@pytest.mark.parametrize(
    "state",
    [
        (RoleState(0, 0, 2, 1, 0, 1), RoleState(1, 1, 0, 1, 1, 0)),
        (RoleState(0, 0, 3, 1), RoleState(2, 1, 0, 1)),
        (RoleState(0, 1, 0, 0), RoleState(0, 0, 0, 0)),
    ],
    ids=["a role without surge", "a lowered target", "nothing wanted, something left"],
)
def test_planner_has_no_dead_ends(state: State) -> None:
    """The Go controller stalls permanently in this state (Q-6)."""
    assert upstream_step(state) is None
    for _ in range(10):
        step = next_step(state)
        if step is None:
            break
        assert step != PlannerStep(tuple(role.old for role in state), tuple(role.new for role in state))
        state = apply_step(state, step)
    assert is_done(state)


def test_added_old_group_is_removed() -> None:
    """The roles return to their sizes (R-DS-46, W11)."""
    state = (RoleState(4, 5, 2, 4), RoleState(4, 5, 2, 4))
    assert next_step(state) == PlannerStep((4, 4), (2, 2))


@pytest.mark.parametrize(
    ("counts", "surge", "expected"),
    [
        ([(4, 4), (4, 4)], 1, 4),
        ([(4, 4), (4, 4)], 2, 2),
        ([(6, 6), (2, 2)], 1, 6),
        ([(0, 3), (0, 3)], 1, 3),
        ([], 1, 0),
    ],
)
def test_number_of_batches_follows_from_sizes_and_budgets(
    counts: list[tuple[int, int]], surge: int, expected: int
) -> None:
    """A rollout has the expected number of batches (R-DS-44, W11)."""
    assert batch_count(roles(counts, surge=surge)) == expected


def test_drain_is_limited_when_the_next_batch_has_no_space() -> None:
    """A role without surge, and without capacity for a batch, loses only as many groups as its minimum permits."""
    found = 0
    for new in range(10):
        for old in range(10):
            state = (RoleState(9, old, new, 9, 0, 2), RoleState(5, min(5, old), min(5, new), 5, 0, 1))
            step, theirs = next_step(state), upstream_step(state)
            if step is None or theirs is None or step == theirs:
                continue
            found += 1
            for role, left in zip(state, step.old, strict=True):
                assert left == role.old or left + role.new >= role.min_groups
    assert found > 0


def test_step_never_adds_old_groups() -> None:
    state = (RoleState(4, 0, 2, 4), RoleState(4, 2, 2, 4))
    assert [role.old for role in apply_step(state, PlannerStep((1, 1), (2, 2)))] == [0, 1]
    assert replace(state[0], old=0) == state[0]


def test_role_below_its_floor_waits_while_a_second_role_drains() -> None:
    """There is no capacity for the batch, so one group of only the second role is removed (R-DS-61)."""
    state = (RoleState(1, 1, 4, 4, 0, 0), RoleState(3, 2, 1, 2, 1, 0))
    assert next_step(state) == PlannerStep((1, 1), (4, 1))
