"""Computes rows that cover each pair of values of two factors, and each remaining value.

The first row has all defaults.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain, combinations, product
from typing import Final, TypeAlias

from tests.shipped.factors import ANNOTATIONS, FIELDS, FLAGS, LEASE, Factor, Row

from leaderworkerset.api import labels

SINGLE: Final = (*FLAGS, *ANNOTATIONS)
FACTORS: Final = (*FIELDS, *SINGLE)

PROVIDER: Final = "gangSchedulingManagement.schedulerProvider"

Choice: TypeAlias = tuple[int, int]
"""A factor and one of its values, both by number."""

Part: TypeAlias = tuple[Choice, ...]
"""A value, or a pair of values in factor order."""


def wanted(paired: Sequence[Factor], single: Sequence[Factor] = ()) -> dict[Part, None]:
    """Return what must be covered: pairs of values of the first factors, and values of the other factors."""
    sizes = [len(factor.values) for factor in (*paired, *single)]
    pairs = [
        ((one, first), (other, second))
        for one, other in combinations(range(len(paired)), 2)
        for first, second in product(range(sizes[one]), range(sizes[other]))
    ]
    values = [((factor, value),) for factor in range(len(sizes)) for value in range(sizes[factor])]
    return dict.fromkeys([*pairs, *values])


def cover(left: dict[Part, None], factors: Sequence[Factor]) -> list[Row]:
    """Return rows that cover these parts.

    Each row starts with an uncovered part, and adds values that cover most parts.
    """
    found: list[Row] = []
    while left:
        chosen = dict(next(iter(left)))
        for number, factor in enumerate(factors):
            if number not in chosen:
                gains = [_gain(left, chosen, (number, value)) for value in range(len(factor.values))]
                chosen[number] = gains.index(max(gains))
        choices = sorted(chosen.items())
        for part in chain(combinations(choices, 2), ((choice,) for choice in choices)):
            left.pop(part, None)
        found.append(_row(factors, chosen))
    return found


@cache
def rows() -> Sequence[Row]:
    """Return the rows of the matrix, one for each process."""
    defaults: Row = {name: None for factor in FACTORS for name in factor.names}
    return [
        {**defaults, **dict(zip(LEASE.names, LEASE.values[0], strict=True))},
        *cover(wanted(FIELDS, SINGLE), FACTORS),
    ]


def of_schedulers() -> list[int]:
    """Return a row number for each gang scheduler, which schedules the LeaderWorkerSets of this row."""
    found = {
        row[PROVIDER]: number
        for number, row in reversed([*enumerate(rows())])
        if row[PROVIDER] is not None and row[labels.GANG_SCHEDULER] is None
    }
    return sorted(found.values())


@cache
def usual() -> list[int]:
    """Return the numbers of rows that together contain each value, the defaults and each gang scheduler."""
    values = [{(factor.names, tuple(row[name] for name in factor.names)) for factor in FACTORS} for row in rows()]
    chosen = {0, *of_schedulers()}
    left = {(factor.names, value) for factor in FACTORS for value in factor.values}.difference(
        *(values[one] for one in chosen)
    )
    while left:
        best = max(range(len(values)), key=lambda number: len(values[number] & left))
        chosen.add(best)
        left -= values[best]
    return sorted(chosen)


def _gain(left: Mapping[Part, None], chosen: Mapping[int, int], choice: Choice) -> int:
    return sum((min(one, choice), max(one, choice)) in left for one in chosen.items()) + ((choice,) in left)


def _row(factors: Sequence[Factor], chosen: Mapping[int, int]) -> Row:
    return {
        name: value
        for number, factor in enumerate(factors)
        for name, value in zip(factor.names, factor.values[chosen[number]], strict=True)
    }
