"""Formats the logs of components inside `lws`. Each event with a sufficient level is a line on stderr.

JSON is written only if requested with `--log-format json`. The manager has separate logs (`manager/managerlog.py`).
Tracebacks do not include local variables, which may contain bearer tokens and Secret data.
"""

import logging
import sys
from contextlib import suppress
from typing import Final, Literal, TextIO, TypeAlias, cast

import structlog
from structlog.typing import EventDict

from lwsctl.cli.views.terminal import escape

Form: TypeAlias = Literal["text", "json"]

TRACEBACKS: Final = structlog.tracebacks.ExceptionDictTransformer(show_locals=False, use_rich=False)


def configure(level: str, stream: TextIO | None = None, *, form: Form = "text") -> None:
    """Send logs to stderr or to `stream`."""
    rendering: list[structlog.typing.Processor] = (
        [structlog.processors.ExceptionRenderer(TRACEBACKS), structlog.processors.JSONRenderer(default=str)]
        if form == "json"
        else [structlog.processors.format_exc_info, render_line]
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso" if form == "json" else "%Y-%m-%dT%H:%M:%SZ", utc=True),
            *rendering,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, LossyStream(stream))),
    )


def configure_default(level: str = "warning") -> None:
    """Set the log level of commands that only watch a cluster to warning, unless a level is configured."""
    if not structlog.is_configured():
        configure(level)


def render_line(_logger: object, _method: str, event: EventDict) -> str:
    """Render time, level, event and error on one line, with other fields in parentheses. A stack trace may follow.

    >>> render_line(None, "", {"timestamp": "12:00", "level": "warning", "event": "failed", "error": "no", "key": "a/b"})
    '12:00 warning: failed: no (key=a/b)'
    """
    fields = dict(event)
    stack = fields.pop("exception", "")
    head = f"{fields.pop('timestamp', '')} {fields.pop('level', '')}: {fields.pop('event', '')}"
    error = f": {fields.pop('error')}" if "error" in fields else ""
    rest = f" ({', '.join(f'{name}={_short(value)}' for name, value in fields.items())})" if fields else ""
    return escape(f"{head}{error}{rest}") + (f"\n{stack}" if stack else "")


def _short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


class LossyStream:
    """A stream that drops data that it cannot write, for example on a full disk. The process then continues.

    Without a stream, it writes to the current standard error, which a live view may have replaced.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        """Write the string, or drop it if it cannot be written."""
        with suppress(OSError):
            (self._stream or sys.stderr).write(text)

    def flush(self) -> None:
        """Flush the stream, if possible."""
        with suppress(OSError):
            (self._stream or sys.stderr).flush()
