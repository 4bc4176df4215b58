"""Tests that logs record events but no secrets."""

import io
import json
from collections.abc import Iterator

import pytest
import structlog

from lwsctl.cli import logging


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


@pytest.mark.parametrize("form", ["text", "json"])
def test_traceback_has_no_values_of_variables(form: logging.Form) -> None:
    stream = io.StringIO()
    logging.configure("warning", stream, form=form)
    fail_with_a_secret()
    told = stream.getvalue()
    assert "broken" in told
    assert "fail_with_a_secret" in told
    assert "bearer-of-trouble" not in told


def test_event_is_a_line_of_text_by_default() -> None:
    stream = io.StringIO()
    logging.configure("warning", stream)
    structlog.get_logger().warning("reconcile failed", key="prod/web", error="first\nsecond", retry_in=0.3217)
    structlog.get_logger().info("reconciled")
    _, _, told = stream.getvalue().partition(" ")
    assert told == "warning: reconcile failed: first\\nsecond (key=prod/web, retry_in=0.322)\n"


def test_logs_follow_a_redirected_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    logging.configure("warning")
    proxy = io.StringIO()
    monkeypatch.setattr("sys.stderr", proxy)
    structlog.get_logger().warning("above the table")
    assert "above the table" in proxy.getvalue()
    assert capsys.readouterr().err == ""


def test_json_log_has_one_line_for_each_event() -> None:
    stream = io.StringIO()
    logging.configure("warning", stream, form="json")
    fail_with_a_secret()
    event = json.loads(stream.getvalue())
    assert (event["event"], event["level"], event["exception"][0]["exc_value"]) == ("request failed", "error", "broken")
