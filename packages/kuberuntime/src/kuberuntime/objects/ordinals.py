"""Parses ordinals, which are the numbers at the end of StatefulSet pod names (R-ADM-3)."""

import re
from collections.abc import Collection
from typing import NamedTuple

from kuberuntime.objects import decimals

NAME = re.compile(r"(.*)-([0-9]+)", re.ASCII)


class Ordinal(NamedTuple):
    """The StatefulSet name and the ordinal in a pod name."""

    parent: str
    number: int


def split(name: str) -> Ordinal | None:
    """Split a pod name. Return None if it does not end with a number.

    >>> split("a-1-0"), split("a--1").parent, split("a1"), split("a-")
    (Ordinal(parent='a-1', number=0), 'a-', None, None)
    """
    match = NAME.fullmatch(name)
    number = decimals.natural(match[2]) if match else None
    return None if match is None or number is None else Ordinal(match[1], number)


def ranges(numbers: Collection[int], most: int | None = None) -> str:
    """Format numbers as ranges. If there are more than `most` ranges, return the first ranges and the total count.

    >>> ranges([7, 0, 1, 2, 5, 8]), ranges([3]), ranges([])
    ('0-2,5,7-8', '3', '')
    >>> ranges(range(0, 20, 2), most=6)
    '0,2,4,6,8,10,… (10)'
    """
    intervals: list[list[int]] = []
    for number in sorted(numbers):
        if intervals and number == intervals[-1][1] + 1:
            intervals[-1][1] = number
        else:
            intervals.append([number, number])
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in intervals[:most]]
    return ",".join(texts) + (f",… ({len(numbers)})" if len(texts) < len(intervals) else "")
