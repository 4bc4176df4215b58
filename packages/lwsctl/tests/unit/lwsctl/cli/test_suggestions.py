"""Tests that similar words are suggested for an unknown word."""

import pytest

from lwsctl.cli import suggestions

FIELDS = ("replicas", "size", "startupPolicy", "rolloutStrategy", "leaderWorkerTemplate")


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("replica", ["replicas"]),
        ("Replicas", ["replicas"]),
        ("relpicas", ["replicas"]),
        ("sise", ["size"]),
        ("startPolicy", ["startupPolicy"]),
        ("nonsense", []),
        ("", []),
    ],
)
def test_nearest_words_are_suggested(word: str, found: list[str]) -> None:
    assert suggestions.similar_words(word, FIELDS) == found


def test_hint_suggests_up_to_three_words() -> None:
    assert (
        suggestions.hint("port", ["ports", "sport", "porta", "porto"]) == ', did you mean "porta", "porto" or "ports"?'
    )
    assert suggestions.hint("x", ["ports"]) == ""
