"""What `lws scale` refuses before it asks a server."""

import pytest

from leaderworkerset.cli import app


@pytest.mark.parametrize("number", ["-1", "2147483648"])
def test_a_number_that_the_field_cannot_hold_is_refused(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["scale", "web", "--replicas", number]) == 2
    assert f"{number} is not in the range 0<=x<=2147483647" in capsys.readouterr().err
