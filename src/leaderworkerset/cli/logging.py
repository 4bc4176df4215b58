"""Logs of the parts that run inside `lws`: words and keys on standard error, from a chosen level up.

Tracebacks are logged without the values of local variables: among them are bearer tokens and the data of Secrets.
"""

import logging
import sys
from contextlib import suppress
from typing import Final, TextIO, cast

import structlog

LEVELS: Final = ("debug", "info", "warning", "error")


TRACEBACKS: Final = structlog.tracebacks.ExceptionDictTransformer(show_locals=False, use_rich=False)


def configure(level: str, stream: TextIO | None = None) -> None:
    """Send logs to standard error, or to `stream`: aligned and colored for a person, JSON where a program reads."""
    stream = stream or sys.stderr
    terminal = stream.isatty()
    plain = structlog.dev.plain_traceback
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *([] if terminal else [structlog.processors.ExceptionRenderer(TRACEBACKS)]),
            structlog.dev.ConsoleRenderer(exception_formatter=plain)
            if terminal
            else structlog.processors.JSONRenderer(default=str),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, Lossy(stream))),
    )


class Lossy:
    """A stream that drops what it cannot write, as on a full disk: a log must not stop the work that it records."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        """Write, or do not."""
        with suppress(OSError):
            self._stream.write(text)

    def flush(self) -> None:
        """Pass on what was written, as far as that is possible."""
        with suppress(OSError):
            self._stream.flush()
