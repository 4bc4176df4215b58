"""Selects an upgrade in a file-based catalog channel in the same way as the Operator Lifecycle Manager.

In: an `olm.channel` blob, and the name of the installed version. Out: the name of the version that replaces it.
"""

import re
from collections.abc import Mapping
from typing import Any

BOUND = re.compile(r"(>=|<)(\d+\.\d+\.\d+)")


def resolve(channel: Mapping[str, Any], installed: str) -> str | None:
    """Return the channel entry that upgrades the installed version, or None if there is none."""
    _, _, version = installed.partition(".v")
    for entry in channel["entries"]:
        is_skipped = installed in entry.get("skips", ())
        in_range = is_in_range(version, entry.get("skipRange", "<0.0.0"))
        if entry["name"] != installed and (entry.get("replaces") == installed or is_skipped or in_range):
            return str(entry["name"])
    return None


def is_in_range(version: str, bounds: str) -> bool:
    """Return whether a version satisfies all constraints.

    >>> is_in_range("0.10.0", ">=0.0.1 <0.9.0"), is_in_range("0.9.9", ">=0.0.1 <0.10.0")
    (False, True)
    """
    number = numbers(version)
    limits = [(sign, numbers(text)) for sign, text in BOUND.findall(bounds)]
    return all(number >= limit if sign == ">=" else number < limit for sign, limit in limits)


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers in a version, which have the same order as versions."""
    return tuple(map(int, version.split(".")))
