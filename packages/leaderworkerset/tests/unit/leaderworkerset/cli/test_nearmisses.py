"""A word that is not known is answered with the words most like it, and with none where none is like it."""

import pytest

from leaderworkerset.cli import nearmisses

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
def test_the_most_similar_words_are_offered(word: str, found: list[str]) -> None:
    assert nearmisses.nearest(word, FIELDS) == found


def test_a_hint_offers_up_to_three_words_in_one_question() -> None:
    assert (
        nearmisses.hint("port", ["ports", "sport", "porta", "porto"]) == ', did you mean "porta", "porto" or "ports"?'
    )
    assert nearmisses.hint("x", ["ports"]) == ""
