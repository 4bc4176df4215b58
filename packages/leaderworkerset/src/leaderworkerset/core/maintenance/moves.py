"""Which groups are moved now: one more only while enough others are available.

A move is a deletion of the group's leader, as an update replaces it: no failure, so without record, delay or budget of
restarts. What is decided here depends on what exists alone. So a move that is not begun when the node opens again does not take
place, a group on two closed nodes leaves both at once, and one that is elsewhere is not moved again.
"""

from collections.abc import Collection, Iterable
from typing import TypeVar

Group = TypeVar("Group")


def choose(waiting: Iterable[Group], available: Collection[Group], least: int) -> list[Group]:
    """Return the groups to move of those that wait, in their order, so that `least` stay available.

    Groups that are not available come first: nothing is lost by their move.

    >>> choose([3, 2, 1], {0, 2, 3}, least=2), choose(["a", "b"], {"a", "b"}, least=2)
    ([1, 3], [])
    """
    broken, whole = list[Group](), list[Group]()
    for one in waiting:
        (whole if one in available else broken).append(one)
    return [*broken, *whole[: max(len(available) - least, 0)]]
