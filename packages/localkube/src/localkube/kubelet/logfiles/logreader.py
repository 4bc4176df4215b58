"""Reads container logs for `/log` and `/attach`, with limits on lines, time and size, and with following.

Writers and followers share one thread. Each follower pauses as long as it works, so that a rank whose log is followed
writes at least at half speed. A follower that is far behind does not pause, as old segments are removed.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final
from weakref import WeakKeyDictionary

from kuberuntime.objects import duration
from localkube.kubelet.logfiles import logformat
from localkube.kubelet.logfiles.logformat import CONTENT, TIMESTAMP_LENGTH, WHOLE
from localkube.kubelet.logfiles.logwriter import LogWriter, Segment, segments
from localkube.podaccess import LogOptions, Stream

BLOCK: Final = 64 * 1024

LONGEST_REST: Final = 0.05
"""The maximum pause in seconds after a block. The time for a block includes other tasks if a reader is slow."""

BEHIND: Final = 3
"""The number of segments behind the writer at which a follower stops pausing."""

_free: "WeakKeyDictionary[asyncio.AbstractEventLoop, float]" = WeakKeyDictionary()
"""The time until which followers in an event loop have paused for all previous blocks."""


async def read(
    directory: Path, run: int, options: LogOptions, writer: LogWriter | None, now: datetime
) -> AsyncIterator[bytes]:
    """Yield chunks of the log of a run. While `writer` is open, continue with new output."""
    limit = options.limit_bytes
    since = _since_timestamp(options, now)
    async for lines in _blocks(directory, run, options, writer):
        piece = b"".join(_render(lines, options, since))
        if limit is not None:
            piece = piece[:limit]
            limit -= len(piece)
        if piece:
            yield piece
        if limit == 0:
            return


async def follow_new_output(directory: Path, writer: LogWriter) -> AsyncIterator[tuple[Stream, bytes]]:
    """Yield the output after this call, until the run finishes."""
    from_here = LogOptions(container="", tail_lines=0)
    async for lines in _blocks(directory, writer.run, from_here, writer):
        for line in lines:
            entry = logformat.parse(line)
            if entry is not None:
                yield entry.stream, entry.render(timestamps=False)


def last_lines(directory: Path, run: int, lines: int, max_bytes: int) -> bytes:
    """Return the last lines of a run, at most `max_bytes` bytes."""
    run_segments = [segment for segment in segments(directory) if segment.run == run]
    index, offset = _tail_position(run_segments, lines)
    content: list[bytes] = []
    for segment in run_segments[index:]:
        with segment.path.open("rb") as file:
            file.seek(offset if segment is run_segments[index] else 0)
            content += _render(list(file), LogOptions(container=""), b"")
    return b"".join(content)[-max_bytes:]


def last_lines_of_runs(directory: Path, lines: int, max_bytes: int) -> list[bytes]:
    """Return the last complete lines of each retained run of a container, oldest first, at most `max_bytes` bytes each."""
    endings = []
    for run in sorted({segment.run for segment in segments(directory)}):
        text = last_lines(directory, run, lines, max_bytes + 1)
        endings.append(text if len(text) <= max_bytes else text.partition(b"\n")[2])
    return endings


def _since_timestamp(options: LogOptions, now: datetime) -> bytes:
    """Return the timestamp before which entries are skipped. Timestamps are compared as strings."""
    if options.since_seconds is not None:
        return logformat.timestamp(now - duration.from_seconds(options.since_seconds)).encode()
    if options.since_time:
        return logformat.timestamp(datetime.fromisoformat(options.since_time).astimezone(UTC)).encode()
    return b""


def _render(lines: list[bytes], options: LogOptions, since: bytes) -> Iterator[bytes]:
    for line in lines:
        if line[WHOLE] == b" F ":  # applies to nearly every line, because the columns before the content are fixed
            if line[:TIMESTAMP_LENGTH] >= since:
                yield line[: TIMESTAMP_LENGTH + 1] + line[CONTENT:] if options.timestamps else line[CONTENT:]
        elif (entry := logformat.parse(line)) is not None and entry.timestamp >= since:
            yield entry.render(timestamps=options.timestamps)


async def _blocks(
    directory: Path, run: int, options: LogOptions, writer: LogWriter | None
) -> AsyncIterator[list[bytes]]:
    """Yield complete lines of the log files of a run, starting at the requested position."""
    run_segments = [segment for segment in segments(directory) if segment.run == run]
    index, offset = _tail_position(run_segments, options.tail_lines) if options.tail_lines is not None else (0, 0)
    segment = run_segments[index] if run_segments else None
    number = segment.number if segment else 0
    while True:
        is_last = writer is None or writer.is_closed
        path = directory / f"{run}-{number}.log"
        if path.exists():
            with path.open("rb") as file:
                file.seek(offset)
                began = time.thread_time()
                for lines in _complete_lines(file):
                    yield lines
                    if not is_last and writer is not None and writer.segment - number < BEHIND:
                        await _yield_time(time.thread_time() - began)
                    began = time.thread_time()
                offset = file.tell()
        following = []
        if is_last or (writer is not None and writer.segment > number):
            following = [later.number for later in segments(directory) if later.run == run and later.number > number]
        if following:
            number, offset = following[0], 0
        elif is_last:
            return
        elif writer is not None and not writer.is_closed and (path.stat().st_size if path.exists() else 0) <= offset:
            await writer.changes.wait()


async def _yield_time(worked: float) -> None:
    loop = asyncio.get_running_loop()
    now = loop.time()
    free = _free[loop] = max(_free.get(loop, now), now) + min(worked, LONGEST_REST)
    await asyncio.sleep(free - now)


def _complete_lines(file: BinaryIO) -> Iterator[list[bytes]]:
    """Yield blocks of complete lines, and set the position to the end of the last block."""
    while lines := file.readlines(BLOCK):
        if not lines[-1].endswith(b"\n"):
            file.seek(-len(lines.pop()), os.SEEK_CUR)
            if lines:
                yield lines
            return
        yield lines


def _tail_position(run_segments: list[Segment], lines: int) -> tuple[int, int]:
    """Return the index of the segment, and the offset in it, at which the last `lines` lines start."""
    missing = lines
    for index in range(len(run_segments) - 1, -1, -1):
        with run_segments[index].path.open("rb") as file:
            offset, missing = _tail_offset(file, missing)
        if missing <= 0:
            return index, offset
    return 0, 0


def _tail_offset(file: BinaryIO, lines: int) -> tuple[int, int]:
    """Return the offset of the last `lines` lines of a file, and the number of lines required from older files."""
    end = file.seek(0, os.SEEK_END)
    if lines <= 0:
        return end, 0
    position, missing = end, lines
    while position > 0:
        start = max(position - BLOCK, 0)
        file.seek(start)
        block = file.read(position - start)
        cut = len(block) - 1 if position == end and block.endswith(b"\n") else len(block)
        while (cut := block.rfind(b"\n", 0, cut)) >= 0:
            missing -= 1
            if missing == 0:
                return start + cut + 1, 0
        position = start
    return 0, missing - 1 if end else missing
