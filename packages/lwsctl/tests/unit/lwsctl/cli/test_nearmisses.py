"""An unknown word is answered with the most similar ones, or with none."""

import pytest

from lwsctl.cli import nearmisses

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
    assert nearmisses.nearest(word, FIELDS) == found


def test_hint_suggests_up_to_three_words() -> None:
    assert (
        nearmisses.hint("port", ["ports", "sport", "porta", "porto"]) == ', did you mean "porta", "porto" or "ports"?'
    )
    assert nearmisses.hint("x", ["ports"]) == ""
