"""Tests values that `lws scale` rejects before it sends a request."""

import pytest

from lwsctl.cli import app


@pytest.mark.parametrize("number", ["-1", "2147483648"])
def test_replicas_out_of_range_are_rejected(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["scale", "web", "--replicas", number]) == 2
    assert f"{number} is not in the range 0<=x<=2147483647" in capsys.readouterr().err


def test_prefer_broken_is_rejected_for_disaggregated_sets(capsys: pytest.CaptureFixture[str]) -> None:
    for further in (["--role", "decode"], ["--output", "name"]):
        assert app.run(["scale", "split", "--replicas", "1", "--prefer-broken", *further]) == 2
        assert (
            "--prefer-broken and --recreate-broken cannot be combined with --role or --output"
            in capsys.readouterr().err
        )
