"""Durations of options: in Go's form (`90s`, `1h30m`), and for limits also as a number of seconds."""

import math

import click

from kuberuntime.objects import duration


def age(value: str) -> int:
    """Read an age: whole seconds, as the API server accepts them, rounded up.

    >>> age("1m30s"), age("500ms")
    (90, 1)
    """
    return math.ceil(_checked(value, _parsed(value, "write 30s, 5m or 1h30m")))


def limit(value: str | float) -> float:
    """Read a time limit: `90`, or `1m30s` as for kubectl. A default is a number already.

    >>> limit("1m30s"), limit("90")
    (90.0, 90.0)
    """
    try:
        found = float(value)
    except ValueError:
        found = _parsed(str(value), "write 30s, 5m, 1h30m, or a number of seconds")
    return _checked(value, found)


def _parsed(value: str, hint: str) -> float:
    try:
        return float(duration.parse(value))
    except ValueError as error:
        raise click.BadParameter(f"{value!r}: {hint}") from error


def _checked(value: str | float, found: float) -> float:
    if not 0 <= found <= duration.LONGEST.total_seconds():  # this also excludes "nan"
        raise click.BadParameter(f"{value!r}: must be between 0 and a hundred years")
    return found
