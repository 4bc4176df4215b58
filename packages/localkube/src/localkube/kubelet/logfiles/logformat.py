r"""Formats and parses lines of container log files as container runtimes write them (CRI), without I/O.

2026-11-20T10:15:02.123456000Z stdout F a whole line
2026-11-20T10:15:02.123456000Z stderr P the first part of a line
"""

from datetime import datetime
from typing import Final

from msgspec import Struct

from localkube.podaccess import Stream

LONGEST_PIECE: Final = 16 * 1024
"""The maximum size of a line in bytes. A longer line is written as partial entries."""

TIMESTAMP_LENGTH: Final = len("2026-11-20T10:15:02.123456000Z")


CONTENT: Final = TIMESTAMP_LENGTH + len(" stdout F ")
"""The offset of the content of an entry. The names of both streams have the same length."""

WHOLE: Final = slice(CONTENT - len(" F "), CONTENT)
"""The offset of the mark for a complete line."""


class LogEntry(Struct, frozen=True):
    """One line of a log file."""

    timestamp: bytes
    stream: Stream
    content: bytes
    is_partial: bool

    def render(self, *, timestamps: bool) -> bytes:
        """Return the line of the entry for log readers."""
        prefix = self.timestamp + b" " if timestamps else b""
        return prefix + self.content + (b"" if self.is_partial else b"\n")


def timestamp(moment: datetime) -> str:
    """Return the time with nanoseconds in a fixed length, so that strings are sorted by time."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond:06d}000Z"


class Framer:
    """Converts the output of one stream to log entries, and buffers at most one chunk of an incomplete line."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._rest = b""

    def feed(self, data: bytes, now: datetime) -> bytes:
        """Return the complete entries.

        The common prefix is formatted once: there may be thousands of lines.
        """
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        full, partial = self._head(now, "F"), self._head(now, "P")
        entries = [
            full + line + b"\n" if len(line) <= LONGEST_PIECE else _split_line(line, full, partial) for line in lines
        ]
        while len(self._rest) >= LONGEST_PIECE:
            piece, self._rest = self._rest[:LONGEST_PIECE], self._rest[LONGEST_PIECE:]
            entries.append(partial + piece + b"\n")
        return b"".join(entries)

    def flush(self, now: datetime) -> bytes:
        """Return the incomplete line at the end of the stream."""
        rest, self._rest = self._rest, b""
        return self._head(now, "P") + rest + b"\n" if rest else b""

    def _head(self, now: datetime, tag: str) -> bytes:
        return f"{timestamp(now)} {self._stream} {tag} ".encode()


def _split_line(line: bytes, full: bytes, partial: bytes) -> bytes:
    """Return the entries of a line that is longer than a chunk. The last entry completes the line."""
    last = (len(line) - 1) // LONGEST_PIECE * LONGEST_PIECE
    pieces = [partial + line[cut : cut + LONGEST_PIECE] + b"\n" for cut in range(0, last, LONGEST_PIECE)]
    return b"".join([*pieces, full, line[last:], b"\n"])


def parse(line: bytes) -> LogEntry | None:
    """Parse one line of a log file, or return None if a crash truncated it."""
    parts = line.rstrip(b"\n").split(b" ", 3)
    if len(parts) < 4 or len(parts[0]) != TIMESTAMP_LENGTH or parts[2] not in (b"F", b"P"):
        return None
    return LogEntry(parts[0], "stderr" if parts[1] == b"stderr" else "stdout", parts[3], is_partial=parts[2] == b"P")
