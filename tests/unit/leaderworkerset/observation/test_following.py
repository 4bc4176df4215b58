"""When what is followed is checked again: after changes, and with pauses that are as long as checks are dear."""

import pytest

from leaderworkerset.observation.following import LONGEST_PAUSE, pause_left


@pytest.mark.parametrize(
    ("took", "since", "expected"),
    [
        (0.02, 0.0, 0.06),
        (0.02, 0.05, 0.01),
        (0.02, 0.06, 0.0),
        (0.02, 9.0, 0.0),
        (1.0, 0.0, LONGEST_PAUSE),
        (0.0, 0.0, 0.0),
    ],
    ids=["at once", "within the pause", "at its end", "long after", "a check of a second", "a check of no time"],
)
def test_a_change_waits_for_what_is_left_of_the_pause_only(took: float, since: float, expected: float) -> None:
    assert pause_left(took, since) == pytest.approx(expected)
