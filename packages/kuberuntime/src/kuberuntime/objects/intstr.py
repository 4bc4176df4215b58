"""Parses numbers or percentages (`maxUnavailable: 1`, `maxSurge: 30%`), and numbers or names (`port`)."""

import re
from typing import TypeAlias

from kuberuntime.objects import decimals

IntOrString: TypeAlias = int | str

PERCENT = re.compile(r"[0-9]+%")
SIGNED_PERCENT = re.compile(r"([+-]?[0-9]{1,18})%")


def is_percent(value: IntOrString) -> bool:
    """Return whether the value is a valid, non-negative percentage.

    >>> is_percent("25%"), is_percent("25"), is_percent(25)
    (True, False, False)
    """
    return isinstance(value, str) and PERCENT.fullmatch(value) is not None


def exceeds_whole(value: IntOrString) -> bool:
    """Return whether the value is a percentage above 100 %.

    >>> exceeds_whole("200%"), exceeds_whole("0100%"), exceeds_whole(200)
    (True, False, False)
    """
    if not isinstance(value, str) or not is_percent(value):
        return False
    digits = value.removesuffix("%").lstrip("0")
    return len(digits) > 3 or (decimals.natural(digits) or 0) > 100


def percent(value: IntOrString) -> int | None:
    """Return the number of a percentage, or None if the value is not a percentage."""
    match = SIGNED_PERCENT.fullmatch(value) if isinstance(value, str) else None
    return decimals.integer(match[1]) if match else None


def is_scalable(value: IntOrString) -> bool:
    """Return whether the value can be scaled, which is true for numbers and all percentages.

    >>> is_scalable("25%"), is_scalable(25), is_scalable("25")
    (True, True, False)
    """
    return isinstance(value, int) or percent(value) is not None


def scale(value: IntOrString, total: int, *, up: bool) -> int:
    """Return the number, or the percentage of `total`, rounded up (maxSurge) or down (maxUnavailable, R-ROLL-1).

    >>> scale("30%", 10, up=True), scale("30%", 2, up=True), scale("25%", 2, up=False), scale(4, 2, up=True)
    (3, 1, 0, 4)
    """
    if isinstance(value, int):
        return value
    product = _percentage(value) * total
    return -(-product // 100) if up else product // 100


def _percentage(value: str) -> int:
    number = percent(value)
    if number is None:
        raise ValueError(f"invalid value for IntOrString: {value!r} is neither a number nor a percentage")
    return number
