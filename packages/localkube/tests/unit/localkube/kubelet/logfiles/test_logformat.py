"""Tests the format of lines in log files."""

from datetime import UTC, datetime

import pytest
from tests.unit.localkube.kubelet.pods import NOW, after

from localkube.kubelet.logfiles import logformat
from localkube.kubelet.logfiles.logformat import LONGEST_PIECE, Framer, LogEntry

STAMP = "2026-03-01T12:00:00.000000000Z"


def fed(*pieces: bytes) -> bytes:
    framer = Framer("stdout")
    return b"".join([*(framer.feed(piece, NOW) for piece in pieces), framer.flush(NOW)])


def test_lines_do_not_depend_on_chunk_boundaries() -> None:
    expected = f"{STAMP} stdout F one\n{STAMP} stdout F two\n".encode()
    assert fed(b"one\ntwo\n") == fed(b"o", b"ne\ntw", b"o\n") == expected


def test_unfinished_line_is_written_as_partial() -> None:
    assert fed(b"one\ntw") == f"{STAMP} stdout F one\n{STAMP} stdout P tw\n".encode()


@pytest.mark.parametrize("length", [0, 1, LONGEST_PIECE - 1, LONGEST_PIECE, LONGEST_PIECE + 1, 3 * LONGEST_PIECE])
@pytest.mark.parametrize("cut", [7, LONGEST_PIECE, 10**6])
def test_long_line_is_split_and_joined_when_read(length: int, cut: int) -> None:
    line = b"x" * length + b"\n"
    written = fed(*(line[start : start + cut] for start in range(0, len(line), cut)))
    entries = [logformat.parse(entry) for entry in written.splitlines(keepends=True)]
    assert b"".join(entry.render(timestamps=False) for entry in entries if entry) == line
    assert all(entry and len(entry.content) <= LONGEST_PIECE for entry in entries)


def test_time_is_formatted_once_for_many_lines() -> None:
    """If a rank writes many short lines, formatting each line separately would slow down the cluster."""
    formatted: list[str] = []

    class Counted(datetime):
        def strftime(self, format: str) -> str:  # noqa: A002 - as in datetime
            formatted.append(format)
            return super().strftime(format)

    framer = Framer("stdout")
    written = framer.feed(b"y\n" * 1000, Counted.fromtimestamp(NOW.timestamp(), tz=UTC))
    assert written == f"{STAMP} stdout F y\n".encode() * 1000
    assert len(formatted) <= 2


def test_empty_line_is_a_line() -> None:
    assert logformat.parse(fed(b"\n")) == LogEntry(STAMP.encode(), "stdout", b"", is_partial=False)


@pytest.mark.parametrize("line", [b"", b"2026 stdout F x\n", b"garbage", STAMP.encode() + b" stdout\n"])
def test_truncated_line_is_not_read(line: bytes) -> None:
    assert logformat.parse(line) is None


def test_timestamps_sort_like_times() -> None:
    stamps = [logformat.timestamp(after(seconds)) for seconds in (0, 0.5, 1, 60)]
    assert stamps == sorted(stamps)
