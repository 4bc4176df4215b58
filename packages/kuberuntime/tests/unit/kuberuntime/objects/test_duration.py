"""Tests durations in Go's notation."""

from datetime import UTC, datetime, timedelta

import pytest

from kuberuntime.objects import duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("15s", 15), ("1m30s", 90), ("500ms", 0.5), ("1.5h", 5400), (".5s", 0.5), ("-2s", -2), ("+2s", 2), ("0", 0)],
)
def test_duration_is_parsed_as_in_go(text: str, seconds: float) -> None:
    assert duration.parse(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("15", 'time: missing unit in duration "15"'),
        ("", 'time: invalid duration ""'),
        ("s", 'time: invalid duration "s"'),
        ("15s x", 'time: invalid duration "15s x"'),
        ("15d", 'time: invalid duration "15d"'),
        ("1.5", 'time: missing unit in duration "1.5"'),
        (".5", 'time: missing unit in duration ".5"'),
        (".s", 'time: invalid duration ".s"'),
        ("\u0661s", 'time: invalid duration "\u0661s"'),
        ("2562048h", 'time: invalid duration "2562048h"'),
    ],
)
def test_malformed_duration_error_equals_the_error_of_go(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="time") as caught:
        duration.parse(text)
    assert str(caught.value) == message


@pytest.mark.parametrize("seconds", [2**62, -(2**62), 1e300, 0, 90])
def test_durations_stay_within_the_range_of_dates(seconds: float) -> None:
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    assert abs((moment + duration.from_seconds(seconds)) - moment) <= duration.LONGEST


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (190, "3m10s"), (660, "11m"), (3 * 3600 + 60, "3h1m"),
     (8 * 3600, "8h"), (30 * 3600, "30h"), (2 * 86400, "2d"), (2 * 86400 + 3600, "2d1h"), (9 * 86400, "9d"),
     (800 * 86400, "2y70d"), (3000 * 86400, "8y")],
)  # fmt: skip
def test_durations_have_at_most_two_units_as_in_kubectl(seconds: float, text: str) -> None:
    assert duration.human(timedelta(seconds=seconds)) == text
