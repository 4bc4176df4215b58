"""Lengths of time as options take them."""

import re

from leaderworkerset.cli.errors import UsageError


def seconds(duration: str) -> int:
    """Read 30s, 5m, 2h, or combinations of them.

    >>> seconds("1m30s"), seconds("2h")
    (90, 7200)
    """
    parts = re.findall(r"(\d+)([smh])", duration)
    if not parts or "".join(number + unit for number, unit in parts) != duration:
        raise UsageError(f"--since: Invalid value: {duration!r}: write 30s, 5m or 2h")
    return sum(int(number) * {"s": 1, "m": 60, "h": 3600}[unit] for number, unit in parts)
