"""Rows that cover every pair of values of two fields, and every value of a flag; the first one sets nothing."""

from collections.abc import Mapping, Sequence
from itertools import chain, combinations, product
from typing import Final, TypeAlias

from tests.integration.shipped.factors import FIELDS, FLAGS, Factor, Row

FACTORS: Final = (*FIELDS, *FLAGS)

Choice: TypeAlias = tuple[int, int]
"""A factor and a value of it, by their numbers."""

Part: TypeAlias = frozenset[Choice]


def wanted(paired: Sequence[Factor], single: Sequence[Factor] = ()) -> dict[Part, None]:
    """Return what has to be covered: pairs of values of the first factors, values of the others; in order."""
    sizes = [len(factor.values) for factor in (*paired, *single)]
    pairs = [
        frozenset({(one, first), (other, second)})
        for one, other in combinations(range(len(paired)), 2)
        for first, second in product(range(sizes[one]), range(sizes[other]))
    ]
    values = [frozenset({(factor, value)}) for factor in range(len(sizes)) for value in range(sizes[factor])]
    return dict.fromkeys([*pairs, *values])


def cover(left: dict[Part, None], factors: Sequence[Factor]) -> list[Row]:
    """Return rows that cover what is wanted: each begins with something uncovered, and adds what covers most."""
    found: list[Row] = []
    while left:
        chosen = dict(next(iter(left)))
        for number, factor in enumerate(factors):
            if number not in chosen:
                gains = [_gain(left, chosen, (number, value)) for value in range(len(factor.values))]
                chosen[number] = gains.index(max(gains))
        for part in chain(combinations(chosen.items(), 2), ((choice,) for choice in chosen.items())):
            left.pop(frozenset(part), None)
        found.append(_row(factors, chosen))
    return found


def rows() -> list[Row]:
    """Return the rows of the matrix: each is one process."""
    return [{name: None for factor in FACTORS for name in factor.names}, *cover(wanted(FIELDS, FLAGS), FACTORS)]


def _gain(left: Mapping[Part, None], chosen: Mapping[int, int], choice: Choice) -> int:
    return sum(frozenset({one, choice}) in left for one in chosen.items()) + (frozenset({choice}) in left)


def _row(factors: Sequence[Factor], chosen: Mapping[int, int]) -> Row:
    return {
        name: value
        for number, factor in enumerate(factors)
        for name, value in zip(factor.names, factor.values[chosen[number]], strict=True)
    }
