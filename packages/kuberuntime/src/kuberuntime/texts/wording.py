"""Formats counts with a noun, and lists of names, for users. The functions are pure."""

from collections.abc import Sequence


def format_count(number: int, noun: str) -> str:
    """Return a number followed by its noun.

    >>> format_count(1, "more rank"), format_count(0, "group")
    ('1 more rank', '0 groups')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def join_names(names: Sequence[str], most: int) -> str:
    """Return the first few names and the number of other names.

    >>> join_names(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
