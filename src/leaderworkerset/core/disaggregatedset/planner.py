"""The next step of a coordinated rollout, as arithmetic on counts (R-DS-44 to R-DS-54).

In: for each role how many groups it had when the rollout began, how many of them are left, how many new ones there are,
how many are wanted, and its budgets. Out: what is to be next, or None where nothing is.

`upstream_step` is the arithmetic of the Go controller to the number. `next_step` is what is done: the same, but that
it never stops before the end (Q-6), and never drains groups whose successors are not ready (docs/adr/0011).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

OLD_SURGE: Final = 1
"""Groups beyond the wanted number that a role without surge may have (R-DS-60): so that its last old group serves on."""


@dataclass(frozen=True, slots=True)
class RoleState:
    """One role in a rollout. `initial`, `old`: groups of old revisions; `surge`, `unavailable`: the budgets in groups."""

    initial: int
    old: int
    new: int
    target: int
    surge: int = 1
    unavailable: int = 0

    @property
    def batch(self) -> int:
        """Return how many groups one step may bring (R-DS-44)."""
        return self.surge if self.surge > 0 else max(1, self.unavailable)

    @property
    def has_floor(self) -> bool:
        """Return whether availability is bounded below: not while a role grows (R-DS-50)."""
        return self.initial >= self.target

    @property
    def floor(self) -> int:
        """Return how many groups must serve."""
        return self.target - self.unavailable

    @property
    def ceiling(self) -> int:
        """Return how many groups may exist."""
        return self.target + self.surge


@dataclass(frozen=True, slots=True)
class Step:
    """What the counts shall be next, by role."""

    old: tuple[int, ...]
    new: tuple[int, ...]


State = Sequence[RoleState]


def next_step(state: State) -> Step | None:
    """Return the next step, None at the end: when no old group is left, and no new one is missing."""
    step = upstream_step(state)
    if step is not None:
        return _ready_first(state, step)
    if is_done(state):
        return None
    return raised(state) or Step((0,) * len(state), _new(state))


def upstream_step(state: State) -> Step | None:
    """Return the step of the Go controller; the first rule that applies wins."""
    if is_done(state) or batches(state) == 0:
        return None
    if any(role.old > role.initial for role in state):  # R-DS-46: somebody grew an old one
        return Step(tuple(min(role.initial, role.old) for role in state), _new(state))
    if all(role.new >= role.target for role in state):  # R-DS-47
        return Step((0,) * len(state), _new(state))
    return _balanced(state, batches(state))


def _balanced(state: State, steps: int) -> Step | None:
    """Return the step that creates the next batch, or that removes old groups for it."""
    old, new = _old(state), _new(state)
    rising = _share(state, steps)
    if _fits(state, rising):
        return Step(old, rising)
    drained = _unorphaned(state, _proportional(state, steps), supply=new)
    if _is_less(drained, old):
        return Step(drained, new)
    forced = _room(state, rising)
    return Step(_unorphaned(state, forced, supply=rising), rising) if _is_less(forced, old) else None


def is_done(state: State) -> bool:
    """Return whether no old group is left, and no new one is missing (R-DS-45)."""
    return all(role.old == 0 and role.new >= role.target for role in state)


def batches(state: State) -> int:
    """Return in how many batches the new groups come (R-DS-44)."""
    return max((_ceil(max(role.initial, role.target), role.batch) for role in state), default=0)


def raised(state: State) -> Step | None:
    """Return the step that brings the next batch and drains nothing; None where nothing is missing."""
    steps = batches(state)
    rising = _share(state, steps) if steps else _new(state)
    return Step(_old(state), rising) if rising != _new(state) else None


def simulate(state: State) -> Iterator[Step]:
    """Yield the counts from the beginning to the end, every step succeeding at once (R-DS-54)."""
    current: State = tuple(replace(role, old=role.initial, new=0) for role in state)
    yield Step(_old(current), _new(current))
    largest = max((max(role.initial, role.target) for role in state), default=0)
    yield from islice(_steps(current), 2 * largest * len(state) + 10)


def _steps(state: State) -> Iterator[Step]:
    while (step := next_step(state)) is not None:
        yield step
        state = moved(state, step)


def moved(state: State, step: Step) -> State:
    """Return the state once a step was made; an old revision never grows."""
    return tuple(
        replace(role, old=min(role.old, old), new=new) for role, old, new in zip(state, step.old, step.new, strict=True)
    )


def _ready_first(state: State, step: Step) -> Step:
    """Return the step, or a lesser one, that leaves the floor to groups that are ready now (R-DS-61).

    New groups that the step brings are not ready yet: where the rest would be too few, the batch comes first and the
    drain later, or less is drained.
    """
    if step.new == _new(state) or not _dips(state, step.old):
        return step
    if all(
        role.target == 0 or role.old + new <= role.target + max(role.surge, OLD_SURGE)
        for role, new in zip(state, step.new, strict=True)
        if new > role.new
    ):
        return Step(_old(state), step.new)
    kept = tuple(
        max(old, min(role.old, role.floor - role.new)) if role.has_floor else old
        for role, old in zip(state, step.old, strict=True)
    )
    whole = _unorphaned(state, kept, supply=_new(state))
    return Step(whole, _new(state)) if _is_less(whole, _old(state)) else Step(_old(state), step.new)


def _dips(state: State, old: Sequence[int]) -> bool:
    """Return whether a role would serve with fewer groups than its floor, and fewer than now."""
    return any(
        role.has_floor and left < role.old and left + role.new < role.floor
        for role, left in zip(state, old, strict=True)
    )


def _share(state: State, steps: int) -> tuple[int, ...]:
    """Return the new groups after the next batch: the same share of every role (R-DS-48)."""
    reached = (steps if role.target == 0 else role.new * steps // role.target for role in state)
    batch = 1 + min(steps, *reached)
    return tuple(max(role.new, min(role.target, _ceil(batch * role.target, steps))) for role in state)


def _fits(state: State, rising: Sequence[int]) -> bool:
    """Return whether no role would have too many groups with the next batch (R-DS-49)."""
    return all(role.target == 0 or role.old + new <= role.ceiling for role, new in zip(state, rising, strict=True))


def _proportional(state: State, steps: int) -> tuple[int, ...]:
    """Return the old groups that are left when every role drains in proportion, above its floor (R-DS-50, R-DS-51)."""
    drained = ((role.initial - role.old) * steps // role.initial for role in state if role.initial > 0)
    batch = 1 + max(0, 0, *drained)
    return tuple(
        max(
            min(role.old, max(0, role.initial - batch * role.initial // steps)),
            max(0, role.floor - role.new) if role.has_floor else 0,
        )
        for role in state
    )


def _room(state: State, rising: Sequence[int]) -> tuple[int, ...]:
    """Return how many old groups of each role may stay beside the batch (R-DS-52)."""
    return tuple(
        max(0, min(role.old, role.ceiling - new), role.floor - new if role.has_floor else 0)
        for role, new in zip(state, rising, strict=True)
    )


def _unorphaned(state: State, old: tuple[int, ...], *, supply: Sequence[int]) -> tuple[int, ...]:
    """Return the old counts with all roles at 0 or none (R-DS-53): a role alone serves nobody."""
    present = [left for role, left in zip(state, old, strict=True) if role.initial > 0]
    if 0 not in present or not any(present):
        return old
    if all(new >= role.floor for role, new in zip(state, supply, strict=True) if role.has_floor):
        return (0,) * len(old)
    return tuple(1 if role.initial > 0 and left == 0 else left for role, left in zip(state, old, strict=True))


def _old(state: State) -> tuple[int, ...]:
    return tuple(role.old for role in state)


def _new(state: State) -> tuple[int, ...]:
    return tuple(role.new for role in state)


def _is_less(counts: Sequence[int], than: Sequence[int]) -> bool:
    return any(count < other for count, other in zip(counts, than, strict=True))


def _ceil(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)
