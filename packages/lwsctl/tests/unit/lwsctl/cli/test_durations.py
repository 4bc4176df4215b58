"""Tests durations in options."""

import click
import pytest

from lwsctl.cli import app, errors
from lwsctl.cli.sharedoptions import age, limit


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90.0), ("0.5", 0.5), ("1m30s", 90.0), ("500ms", 0.5), ("0", 0.0), ("2h", 7200.0)]
)
def test_time_limit_is_a_number_of_seconds_or_a_duration(text: str, seconds: float) -> None:
    assert limit(text) == seconds


@pytest.mark.parametrize(("text", "seconds"), [("1m30s", 90), ("1.5s", 2), ("10ms", 1), ("0", 0)])
def test_age_has_whole_seconds(text: str, seconds: int) -> None:
    assert (age(text), type(age(text))) == (seconds, int)


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "-1s", "1e300", "900000h"])
def test_excessive_time_limit_is_rejected(text: str) -> None:
    with pytest.raises(click.BadParameter, match="must be between 0 and a hundred years"):
        limit(text)


@pytest.mark.parametrize("text", ["90", "1h30", "1d", "soon", ""])
def test_age_without_a_unit_is_rejected(text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"^'.*': use a duration such as 30s, 5m or 1h30m$"):
        age(text)


def test_duration_error_names_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["wait", "web", "--timeout", "a while"]) == errors.USAGE
    told = "Invalid value for '--timeout': 'a while': use a duration such as 30s, 5m or 1h30m, or a number of seconds"
    assert told in capsys.readouterr().err
