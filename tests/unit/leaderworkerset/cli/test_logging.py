"""Logs record what happened, and never what is secret."""

import io
import json
from collections.abc import Iterator

import pytest
import structlog

from leaderworkerset.cli import logging


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = structlog.get_config()
    yield
    structlog.configure(**before)


def fail_with_a_secret() -> None:
    token = "bearer-of-trouble"
    try:
        raise RuntimeError("broken") if token else AssertionError
    except RuntimeError:
        structlog.get_logger().exception("request failed", path="/api/v1/secrets")


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()], ids=["terminal", "file"])
def test_a_traceback_has_no_values_of_variables(stream: io.StringIO) -> None:
    logging.configure("warning", stream)
    fail_with_a_secret()
    told = stream.getvalue()
    assert "broken" in told
    assert "fail_with_a_secret" in told
    assert "bearer-of-trouble" not in told


def test_a_file_gets_one_line_of_json_for_each_event() -> None:
    stream = io.StringIO()
    logging.configure("warning", stream)
    fail_with_a_secret()
    event = json.loads(stream.getvalue())
    assert (event["event"], event["level"], event["exception"][0]["exc_value"]) == ("request failed", "error", "broken")
