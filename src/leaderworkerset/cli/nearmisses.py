"""What a word that is not known may have been meant as: commands, kinds and fields. Pure: words in, a hint out."""

from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Final

CLOSE: Final = 0.7
"""How similar two words must be, from 0 to 1, for one to be offered in place of the other."""

MOST: Final = 3
"""Suggestions that one message offers at most."""


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """Return the known words most like `word`, the best first; upper and lower case count as the same.

    >>> nearest("replica", ["replicas", "size", "startupPolicy"])
    ['replicas']
    >>> nearest("gte", ["get", "delete", "run"])
    ['get']
    """
    scored = sorted((-_likeness(word.lower(), one.lower()), one) for one in set(known) - {word})
    return [one for score, one in scored if -score >= CLOSE][:MOST]


def hint(word: str, known: Iterable[str]) -> str:
    """Return the question that follows a message about an unknown word; empty where nothing is like it.

    >>> hint("replica", ["replicas"])
    ', did you mean "replicas"?'
    """
    found = nearest(word, known)
    if not found:
        return ""
    quoted = [f'"{one}"' for one in found]
    return f", did you mean {' or '.join([', '.join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)}?"


def _likeness(one: str, other: str) -> float:
    """Return how alike two words are; two neighboring letters in the wrong order count as one error."""
    if sorted(one) == sorted(other) and sum(a != b for a, b in zip(one, other, strict=True)) <= 2:
        return 1.0
    return SequenceMatcher(None, one, other).ratio()
