"""Computes the next step of a coordinated rollout from group counts (R-DS-44 to R-DS-54).

Input: for each role, the numbers of initial, remaining old, existing new and desired groups, and the budgets. Output:
the next counts, or None if the rollout is complete.

`upstream_step` returns the same numbers as the Go controller. Callers use `next_step`, which never stops before the
rollout is complete (Q-6), and never drains groups whose successors are not ready (docs/adr/0011).
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

OLD_SURGE: Final = 1
"""The number of extra groups of a role without surge. The last old group can continue to serve (R-DS-60)."""


class RoleState(Struct, frozen=True):
    """A role in a rollout. `initial` and `old` count old groups. `surge` and `unavailable` are limits."""

    initial: int
    old: int
    new: int
    target: int
    surge: int = 1
    unavailable: int = 0

    @property
    def batch(self) -> int:
        """Return the maximum number of new groups in each step (R-DS-44)."""
        return self.surge if self.surge > 0 else max(1, self.unavailable)

    @property
    def has_min_groups(self) -> bool:
        """Return whether a minimum number of groups must be available, except during a scale-up (R-DS-50)."""
        return self.initial >= self.target

    @property
    def min_groups(self) -> int:
        """Return the minimum number of available groups."""
        return self.target - self.unavailable

    @property
    def max_groups(self) -> int:
        """Return the maximum number of groups."""
        return self.target + self.surge


class PlannerStep(Struct, frozen=True):
    """The next group counts by role."""

    old: tuple[int, ...]
    new: tuple[int, ...]


State = Sequence[RoleState]


def next_step(state: State) -> PlannerStep | None:
    """Return the next step, or None if there are no old groups and no missing new groups."""
    step = upstream_step(state)
    if step is not None:
        return _preserve_ready_groups(state, step)
    if is_done(state):
        return None
    return create_batch(state) or PlannerStep((0,) * len(state), _new_counts(state))


def upstream_step(state: State) -> PlannerStep | None:
    """Return the next step of the Go controller. The first applicable rule is used."""
    if is_done(state) or batch_count(state) == 0:
        return None
    if any(role.old > role.initial for role in state):  # a user scaled up an old LeaderWorkerSet (R-DS-46)
        return PlannerStep(tuple(min(role.initial, role.old) for role in state), _new_counts(state))
    if all(role.new >= role.target for role in state):  # all new groups exist (R-DS-47)
        return PlannerStep((0,) * len(state), _new_counts(state))
    return _create_or_drain(state, batch_count(state))


def _create_or_drain(state: State, steps: int) -> PlannerStep | None:
    """Return the step that creates the next batch, or that first deletes old groups because of the limit."""
    old, new = _old_counts(state), _new_counts(state)
    rising = _new_groups_after_batch(state, steps)
    if _fits_maximum(state, rising):
        return PlannerStep(old, rising)
    drained = _without_single_roles(state, _drain_proportionally(state, steps), supply=new)
    if _is_less(drained, old):
        return PlannerStep(drained, new)
    forced = _max_old_groups(state, rising)
    return PlannerStep(_without_single_roles(state, forced, supply=rising), rising) if _is_less(forced, old) else None


def is_done(state: State) -> bool:
    """Return whether there are no old groups and no missing new groups (R-DS-45)."""
    return all(role.old == 0 and role.new >= role.target for role in state)


def batch_count(state: State) -> int:
    """Return the number of batches for the new groups (R-DS-44)."""
    return max((_divide_rounding_up(max(role.initial, role.target), role.batch) for role in state), default=0)


def create_batch(state: State) -> PlannerStep | None:
    """Return the step that creates the next batch without draining groups, or None if no groups are missing."""
    steps = batch_count(state)
    rising = _new_groups_after_batch(state, steps) if steps else _new_counts(state)
    return PlannerStep(_old_counts(state), rising) if rising != _new_counts(state) else None


def simulate(state: State) -> Iterator[PlannerStep]:
    """Yield the counts of all steps in a rollout whose steps all succeed immediately (R-DS-54)."""
    current: State = tuple(replace(role, old=role.initial, new=0) for role in state)
    yield PlannerStep(_old_counts(current), _new_counts(current))
    largest = max((max(role.initial, role.target) for role in state), default=0)
    yield from islice(_steps(current), 2 * largest * len(state) + 10)


def _steps(state: State) -> Iterator[PlannerStep]:
    while (step := next_step(state)) is not None:
        yield step
        state = apply_step(state, step)


def apply_step(state: State, step: PlannerStep) -> State:
    """Return the state after a step. The number of old groups never increases."""
    return tuple(
        replace(role, old=min(role.old, old), new=new) for role, old, new in zip(state, step.old, step.new, strict=True)
    )


def _preserve_ready_groups(state: State, step: PlannerStep) -> PlannerStep:
    """Return the step, or a smaller step that preserves the minimum number of ready groups (R-DS-61).

    New groups that the step creates are not ready yet. If too few ready groups would be left, only the batch is created
    now, or fewer groups are drained.
    """
    if step.new == _new_counts(state) or not _falls_below_minimum(state, step.old):
        return step
    if all(
        role.target == 0 or role.old + new <= role.target + max(role.surge, OLD_SURGE)
        for role, new in zip(state, step.new, strict=True)
        if new > role.new
    ):
        return PlannerStep(_old_counts(state), step.new)
    kept = tuple(
        max(old, min(role.old, role.min_groups - role.new)) if role.has_min_groups else old
        for role, old in zip(state, step.old, strict=True)
    )
    settled = _without_single_roles(state, kept, supply=_new_counts(state))
    return (
        PlannerStep(settled, _new_counts(state))
        if _is_less(settled, _old_counts(state))
        else PlannerStep(_old_counts(state), step.new)
    )


def _falls_below_minimum(state: State, old: Sequence[int]) -> bool:
    """Return whether a role would have fewer groups than its minimum and its current number."""
    return any(
        role.has_min_groups and left < role.old and left + role.new < role.min_groups
        for role, left in zip(state, old, strict=True)
    )


def _new_groups_after_batch(state: State, steps: int) -> tuple[int, ...]:
    """Return the number of new groups after the next batch, which is the same fraction for all roles (R-DS-48)."""
    reached = (steps if role.target == 0 else role.new * steps // role.target for role in state)
    batch = 1 + min(steps, *reached)
    return tuple(max(role.new, min(role.target, _divide_rounding_up(batch * role.target, steps))) for role in state)


def _fits_maximum(state: State, rising: Sequence[int]) -> bool:
    """Return whether all roles are within their maximum number of groups after the next batch (R-DS-49)."""
    return all(role.target == 0 or role.old + new <= role.max_groups for role, new in zip(state, rising, strict=True))


def _drain_proportionally(state: State, steps: int) -> tuple[int, ...]:
    """Return the old groups after a proportional drain of all roles above the minimum (R-DS-50, R-DS-51)."""
    drained = ((role.initial - role.old) * steps // role.initial for role in state if role.initial > 0)
    batch = 1 + max(0, 0, *drained)
    return tuple(
        max(
            min(role.old, max(0, role.initial - batch * role.initial // steps)),
            max(0, role.min_groups - role.new) if role.has_min_groups else 0,
        )
        for role in state
    )


def _max_old_groups(state: State, rising: Sequence[int]) -> tuple[int, ...]:
    """Return the maximum number of old groups of each role that can exist in addition to the batch (R-DS-52)."""
    return tuple(
        max(0, min(role.old, role.max_groups - new), role.min_groups - new if role.has_min_groups else 0)
        for role, new in zip(state, rising, strict=True)
    )


def _without_single_roles(state: State, old: tuple[int, ...], *, supply: Sequence[int]) -> tuple[int, ...]:
    """Return the old counts. Either all counts are 0 or none is 0, because single roles cannot serve (R-DS-53)."""
    present = [left for role, left in zip(state, old, strict=True) if role.initial > 0]
    if 0 not in present or not any(present):
        return old
    if all(new >= role.min_groups for role, new in zip(state, supply, strict=True) if role.has_min_groups):
        return (0,) * len(old)
    return tuple(1 if role.initial > 0 and left == 0 else left for role, left in zip(state, old, strict=True))


def _old_counts(state: State) -> tuple[int, ...]:
    return tuple(role.old for role in state)


def _new_counts(state: State) -> tuple[int, ...]:
    return tuple(role.new for role in state)


def _is_less(counts: Sequence[int], than: Sequence[int]) -> bool:
    return any(count < other for count, other in zip(counts, than, strict=True))


def _divide_rounding_up(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)
