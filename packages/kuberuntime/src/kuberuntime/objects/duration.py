"""Parses durations in Go's notation (`15s`, `1h30m`, `500ms`, `-1.5h`), and formats durations as kubectl does.

API seconds are converted to durations that `datetime` can add to the current time.
"""

import re
from datetime import timedelta
from typing import Final

from msgspec import Struct

LONGEST: Final = timedelta(days=36_525)
"""The maximum duration, which is a century. `datetime` can represent any time within a century from now."""

UNITS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}

_NUMBER: Final = r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+"
_UNIT: Final = "|".join(UNITS)
_PART: Final = re.compile(f"({_NUMBER})({_UNIT})")
_WHOLE: Final = re.compile(f"(?:(?:{_NUMBER})(?:{_UNIT}))+")
"""The pattern of a duration. It is unambiguous, so that long invalid strings are rejected in linear time."""

MOST: Final = 2**63 / 1e9
"""The maximum number of seconds of Go's `time.Duration` (64 bits of nanoseconds)."""


class Duration(float):
    """A duration in seconds. It is a separate type, so that decoders parse it from a string."""

    __slots__ = ()


def parse(text: str) -> Duration:
    """Parse a duration. Raise `ValueError` with Go's message.

    >>> parse("1m30s"), parse("500ms"), parse("0")
    (90.0, 0.5, 0.0)
    """
    sign, rest = (-1.0, text[1:]) if text.startswith("-") else (1.0, text.removeprefix("+"))
    if rest == "0":
        return Duration(0.0)
    if not _WHOLE.fullmatch(rest):
        missing = "missing unit in" if re.fullmatch(_NUMBER, rest) else "invalid"
        raise ValueError(f'time: {missing} duration "{text}"')
    seconds = sum(float(number) * UNITS[unit] for number, unit in _PART.findall(rest))
    if seconds >= MOST:
        raise ValueError(f'time: invalid duration "{text}"')
    return Duration(sign * seconds)


def from_seconds(seconds: float) -> timedelta:
    """Convert 64-bit API seconds to a duration of at most `LONGEST`.

    >>> from_seconds(90), from_seconds(2**62) == LONGEST, from_seconds(-(2**62)) == -LONGEST
    (datetime.timedelta(seconds=90), True, True)
    """
    longest = LONGEST.total_seconds()
    return timedelta(seconds=min(max(seconds, -longest), longest))


class Range(Struct, frozen=True):
    """A duration range, from one second to a number of hours."""

    hours: int

    def __str__(self) -> str:
        return f"a duration from 1s to {self.hours}h"

    def contains(self, seconds: float) -> bool:
        """Return whether the range contains a duration in seconds."""
        return 1 <= seconds <= self.hours * 3600

    def parse(self, text: str) -> timedelta | None:
        """Parse a duration. Return None if it is invalid or not in the range."""
        try:
            seconds = parse(text)
        except ValueError:
            return None
        return timedelta(seconds=seconds) if self.contains(seconds) else None


_SIZES: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "y": 365 * 86400}
_STEPS: Final = (  # below this number of seconds, use this unit and the smaller unit
    (120, "s", ""),
    (600, "m", "s"),
    (3 * 3600, "m", ""),
    (8 * 3600, "h", "m"),
    (48 * 3600, "h", ""),
    (8 * 86400, "d", "h"),
    (2 * 365 * 86400, "d", ""),
    (8 * 365 * 86400, "y", "d"),
    (float("inf"), "y", ""),
)


def human(length: timedelta) -> str:
    """Format a duration in at most two units, for example 5s, 3m20s, 15m, 4h10m, 30h, 3d, 2y100d.

    >>> human(timedelta(seconds=-1)), human(timedelta(seconds=190)), human(timedelta(days=3, hours=2))
    ('0s', '3m10s', '3d2h')
    """
    seconds = max(int(length.total_seconds()), 0)
    unit, smaller = next((unit, smaller) for below, unit, smaller in _STEPS if seconds < below)
    count, rest = divmod(seconds, _SIZES[unit])
    remainder = rest // _SIZES[smaller] if smaller else 0
    return f"{count}{unit}" + (f"{remainder}{smaller}" if remainder else "")
