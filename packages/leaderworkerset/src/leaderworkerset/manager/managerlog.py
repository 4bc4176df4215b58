"""Writes logs in the formats of the Go manager, which are tab-separated lines and JSON.

Console: time, level, logger, message, and the rest as JSON, separated by tabs. JSON: `level`, `ts`, `logger`, `msg` and
the rest. So tools that parse the logs of one manager can also parse the logs of the other.
"""

import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, Literal, TextIO, TypeAlias

import msgspec
import structlog
from structlog.typing import EventDict

from kuberuntime.clock import SystemClock

Encoder: TypeAlias = Literal["console", "json"]

LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "panic": logging.CRITICAL,
}

TIMES: Final[dict[str, Callable[[float], str | float | int]]] = {
    "epoch": lambda seconds: seconds,
    "millis": lambda seconds: seconds * 1e3,
    "nano": lambda seconds: int(seconds * 1e9),
    "iso8601": lambda seconds: (
        _utc(seconds).strftime("%Y-%m-%dT%H:%M:%S.") + f"{_utc(seconds).microsecond // 1000:03}Z"
    ),
    "rfc3339": lambda seconds: _utc(seconds).strftime("%Y-%m-%dT%H:%M:%SZ"),
    "rfc3339nano": lambda seconds: _utc(seconds).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
}


ZAP_NAMES: Final = {"warning": "warn", "critical": "panic"}
"""The log levels that have a different name in zap."""


class LogSettings(msgspec.Struct, frozen=True):
    """The log format, the minimum log level, and the minimum level for stack traces."""

    encoder: Encoder = "console"
    level: str = "info"
    stacktrace_level: str = "error"
    times: str = "rfc3339"


class Threshold:
    """The minimum log level, as a structlog processor. Changes also affect bound loggers."""

    def __init__(self, level: int) -> None:
        self._usual = self._lowest = level

    def __call__(self, _logger: object, method: str, event: EventDict) -> EventDict:
        """Drop a log line below the minimum level."""
        if LEVELS.get(method, logging.CRITICAL) < self._lowest:
            raise structlog.DropEvent
        return event

    def toggle_debug(self) -> None:
        """Enable debug logs, or restore the configured level."""
        is_debug = self._lowest == logging.DEBUG
        self._lowest = max(self._usual, logging.INFO) if is_debug else logging.DEBUG
        structlog.get_logger(__name__).warning("log level changed", lowest=logging.getLevelName(self._lowest).lower())


def configure(settings: LogSettings, stream: TextIO | None = None) -> Threshold:
    """Write logs to standard error or to `stream`. Return an object that can change their level."""
    threshold = Threshold(LEVELS[settings.level])
    structlog.configure(
        processors=[
            threshold,
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            _add_time(TIMES[settings.times]),
            _drop_stack_below(LEVELS[settings.stacktrace_level]),
            structlog.processors.format_exc_info,
            _name_level,
            render_console if settings.encoder == "console" else render_json,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
        logger_factory=structlog.PrintLoggerFactory(stream or sys.stderr),
    )
    return threshold


def render_console(_logger: object, _method: str, event: EventDict) -> str:
    r"""Format time, level, logger, message and fields, separated by tabs. A stack trace is added on separate lines.

    >>> render_console(None, "", {"ts": "now", "level": "info", "event": "reconciled", "key": "a/b"})
    'now\tINFO\treconciled\t{"key":"a/b"}'
    """
    stack = event.pop("exception", None)
    head = [event.pop("ts"), event.pop("level").upper(), event.pop("logger", None), event.pop("event")]
    parts = [str(part) for part in head if part is not None] + ([_json(dict(event))] if event else [])
    return "\t".join(parts) + (f"\n{stack}" if stack else "")


def render_json(_logger: object, _method: str, event: EventDict) -> str:
    """Format a JSON object with the field names of zap.

    >>> render_json(None, "", {"ts": 1, "level": "info", "event": "reconciled", "key": "a/b"})
    '{"level":"info","ts":1,"msg":"reconciled","key":"a/b"}'
    """
    head = {"level": event.pop("level"), "ts": event.pop("ts")}
    name = {"logger": event.pop("logger")} if "logger" in event else {}
    stack = {"stacktrace": event.pop("exception")} if "exception" in event else {}
    return _json(head | name | {"msg": event.pop("event")} | dict(event) | stack)


def _add_time(encode: Callable[[float], str | float | int]) -> structlog.typing.Processor:
    def stamp(_logger: object, _method: str, event: EventDict) -> EventDict:
        event["ts"] = encode(SystemClock().now().timestamp())
        return event

    return stamp


def _drop_stack_below(lowest: int) -> structlog.typing.Processor:
    """Remove the stack trace of an error below `lowest`, but not the error itself."""

    def drop(_logger: object, _method: str, event: EventDict) -> EventDict:
        if event.get("exc_info") and LEVELS.get(event["level"], lowest) < lowest:
            del event["exc_info"]
            error = sys.exc_info()[1]
            event.setdefault("error", f"{type(error).__name__}: {error}")
        return event

    return drop


def _name_level(_logger: object, _method: str, event: EventDict) -> EventDict:
    event["level"] = ZAP_NAMES.get(event["level"], event["level"])
    return event


def _json(value: dict[str, Any]) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode()


def _utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
