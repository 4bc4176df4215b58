"""Suggests similar commands, kinds and fields for an unknown word. Pure."""

from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Final

CLOSE: Final = 0.7
"""The minimum similarity of two words for a suggestion, from 0 to 1."""

MOST: Final = 3
"""The maximum number of suggestions in one message."""


def similar_words(word: str, known: Iterable[str]) -> list[str]:
    """Return the known words that are most similar to `word`, the most similar first. Case is ignored.

    >>> similar_words("replica", ["replicas", "size", "startupPolicy"])
    ['replicas']
    >>> similar_words("gte", ["get", "delete", "run"])
    ['get']
    """
    scored = sorted((-_similarity(word.lower(), candidate.lower()), candidate) for candidate in set(known) - {word})
    return [candidate for score, candidate in scored if -score >= CLOSE][:MOST]


def hint(word: str, known: Iterable[str]) -> str:
    """Return the suggestion for an unknown word, or an empty string if no word is similar.

    >>> hint("replica", ["replicas"])
    ', did you mean "replicas"?'
    """
    matches = similar_words(word, known)
    if not matches:
        return ""
    quoted = [f'"{name}"' for name in matches]
    return f", did you mean {' or '.join([', '.join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)}?"


def _similarity(word: str, other: str) -> float:
    """Return the similarity of two words. A swap of two adjacent letters counts as one error."""
    if sorted(word) == sorted(other) and sum(a != b for a, b in zip(word, other, strict=True)) <= 2:
        return 1.0
    return SequenceMatcher(None, word, other).ratio()
