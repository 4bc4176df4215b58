"""Tests logs in both zap formats."""

import io
import json
from collections.abc import Iterator

import pytest
import structlog

from leaderworkerset.manager import managerlog
from leaderworkerset.manager.managerlog import TIMES, LogSettings


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    yield io.StringIO()
    structlog.reset_defaults()


def test_console_lines_are_separated_by_tabs(stream: io.StringIO) -> None:
    managerlog.configure(LogSettings(), stream)
    log = structlog.get_logger()
    log.info("Serving metrics server", logger="controller-runtime.metrics", bindAddress=":8443")
    log.debug("left out")
    log.warning("careful")
    first, second = stream.getvalue().splitlines()
    assert first.split("\t")[1:] == [
        "INFO",
        "controller-runtime.metrics",
        "Serving metrics server",
        '{"bindAddress":":8443"}',
    ]
    assert second.split("\t")[1:] == ["WARN", "careful"]


def test_level_changes_at_run_time(stream: io.StringIO) -> None:
    """A new level also applies to loggers that were bound earlier."""
    threshold = managerlog.configure(LogSettings(level="error"), stream)
    log = structlog.get_logger().bind(controller="pod")
    log.info("dropped")
    threshold.toggle_debug()
    log.debug("one")
    threshold.toggle_debug()
    log.debug("dropped")
    log.error("two")
    assert [line.split("\t")[2] for line in stream.getvalue().splitlines()] == ["log level changed", "one", "two"]


def test_json_lines_have_fields(stream: io.StringIO) -> None:
    managerlog.configure(LogSettings(encoder="json", times="epoch"), stream)
    structlog.get_logger().info("reconciled", logger="pod", key=object)
    line = json.loads(stream.getvalue())
    assert isinstance(line.pop("ts"), float)
    assert line == {"level": "info", "logger": "pod", "msg": "reconciled", "key": "<class 'object'>"}


@pytest.mark.parametrize(("lowest", "has_stack"), [("error", True), ("panic", False)])
def test_errors_have_a_stack_trace_from_the_given_level(stream: io.StringIO, lowest: str, has_stack: bool) -> None:
    managerlog.configure(LogSettings(stacktrace_level=lowest), stream)
    try:
        int("x")
    except ValueError:
        structlog.get_logger().exception("broke")
    text = stream.getvalue()
    assert ("Traceback" in text) is has_stack
    assert "ValueError: invalid literal" in text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epoch", 1.5),
        ("millis", 1500.0),
        ("nano", 1_500_000_000),
        ("iso8601", "1970-01-01T00:00:01.500Z"),
        ("rfc3339", "1970-01-01T00:00:01Z"),
        ("rfc3339nano", "1970-01-01T00:00:01.500000Z"),
    ],
)
def test_times_have_the_given_format(name: str, value: object) -> None:
    assert TIMES[name](1.5) == value
