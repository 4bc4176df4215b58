"""Tests annotations for restarts in place, which every user with permissions for pods can write."""

import pytest
from tests import builders

from leaderworkerset.api import labels, restartannotation
from leaderworkerset.api.restartannotation import NOTHING, InPlaceRestarts


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("", NOTHING),
        ("often", NOTHING),
        ("-1", NOTHING),
        ("9" * 4301, NOTHING),
        ("3", InPlaceRestarts(3)),
        ("3=soon", InPlaceRestarts(3)),
        ("3=2026-03-01T12:00:00", InPlaceRestarts(3)),
        ("3=2026-03-01T12:00:00Z", InPlaceRestarts(3, builders.NOW)),
    ],
)
def test_unreadable_note_counts_as_absent(text: str, note: InPlaceRestarts) -> None:
    assert restartannotation.read({"metadata": {"annotations": {labels.RESTARTED_IN_PLACE: text}}}) == note


def test_restart_note_round_trips() -> None:
    for note in (InPlaceRestarts(2), InPlaceRestarts(2, builders.NOW)):
        assert restartannotation.read({"metadata": {"annotations": {labels.RESTARTED_IN_PLACE: str(note)}}}) == note
