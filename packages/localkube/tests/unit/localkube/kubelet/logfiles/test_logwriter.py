"""Tests writing and reading container logs."""

import asyncio
import os
import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testkit.virtualtime import START, VirtualClock

from localkube.kubelet.logfiles import logformat, logreader
from localkube.kubelet.logfiles.logwriter import LogWriter, segments
from localkube.podaccess import LogOptions

pytestmark = pytest.mark.virtual_time


def written(directory: Path, *pieces: bytes, size: int = 10**6) -> LogWriter:
    """Write one chunk per second to a container log."""
    writer = LogWriter(directory, VirtualClock(), segment_size=size)
    for piece in pieces:
        os.write(writer.stdout, piece)
        writer._read(writer._inputs[0])
    return writer


async def read(directory: Path, run_number: int = 0, **options: Any) -> bytes:
    wanted = LogOptions(container="main", **options)
    return b"".join([piece async for piece in logreader.read(directory, run_number, wanted, None, START)])


async def test_output_of_a_process_is_read_back(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, VirtualClock())
    os.write(writer.stdout, b"out\n")
    os.write(writer.stderr, b"err\nlast")
    writer.close()
    assert sorted((await read(tmp_path)).split(b"\n")) == [b"err", b"last", b"out"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, b"1\n2\n3\n4\n"),
        ({"tail_lines": 2}, b"3\n4\n"),
        ({"tail_lines": 0}, b""),
        ({"tail_lines": 9}, b"1\n2\n3\n4\n"),
        ({"limit_bytes": 3}, b"1\n2"),
        ({"tail_lines": 3, "limit_bytes": 4}, b"2\n3\n"),
    ],
)
@pytest.mark.parametrize("size", [1, 60, 10**6])
async def test_reader_options_select_lines(tmp_path: Path, options: dict[str, int], expected: bytes, size: int) -> None:
    written(tmp_path, b"1\n", b"2\n", b"3\n", b"4\n", size=size).close()
    assert await read(tmp_path, **options) == expected


async def test_reader_can_start_at_a_time_and_show_times(tmp_path: Path) -> None:
    writer = written(tmp_path, b"early\n")
    await asyncio.sleep(10)
    os.write(writer.stdout, b"late\n")
    writer.close()
    stamp = b"2026-01-01T00:00:10.000000000Z late\n"
    assert await read(tmp_path, since_time="2026-01-01T01:00:05+01:00", timestamps=True) == stamp
    later = LogOptions(container="main", since_seconds=5)
    pieces = [piece async for piece in logreader.read(tmp_path, 0, later, None, VirtualClock().now())]
    assert pieces == [b"late\n"]


async def test_newest_segments_of_a_run_are_kept(tmp_path: Path) -> None:
    lines = [f"{number}\n".encode() for number in range(9)]
    written(tmp_path, *lines, size=1).close()
    assert [segment.number for segment in segments(tmp_path)] == [4, 5, 6, 7, 8]
    assert await read(tmp_path) == b"4\n5\n6\n7\n8\n"


async def test_last_two_runs_are_kept_even_without_output(tmp_path: Path) -> None:
    for _ in range(4):
        LogWriter(tmp_path, VirtualClock()).close()
    assert [segment.run for segment in segments(tmp_path)] == [2, 3]


async def test_follower_reads_new_lines_across_segments(tmp_path: Path) -> None:
    writer = written(tmp_path, b"1\n", size=1)
    options = LogOptions(container="main", follow=True)
    seen: list[bytes] = []

    async def follow() -> None:
        async for piece in logreader.read(tmp_path, 0, options, writer, START):
            seen.append(piece)  # noqa: PERF401 - seen while it grows

    follower = asyncio.create_task(follow())
    for line in (b"2\n", b"3\n", b"4\n"):
        await asyncio.sleep(1)
        os.write(writer.stdout, line)
        await asyncio.sleep(1)
        assert seen[-1] == line
    assert not follower.done()
    writer.close()
    await follower
    assert b"".join(seen) == b"1\n2\n3\n4\n"


async def test_tail_is_found_across_blocks(tmp_path: Path) -> None:
    lines = [b"%05d " % number + b"x" * 90 for number in range(3000)]
    writer = LogWriter(tmp_path, VirtualClock())
    for start in range(0, 3000, 100):
        os.write(writer.stdout, b"\n".join(lines[start : start + 100]) + b"\n")
        writer._read(writer._inputs[0])
    writer.close()
    for wanted in (1, 500, 2999):
        tail = (await read(tmp_path, tail_lines=wanted)).splitlines()
        assert tail == lines[-wanted:]


async def test_last_lines_are_bounded_in_number_and_size(tmp_path: Path) -> None:
    written(tmp_path, b"1\n2\n", b"3\n4\n", size=1).close()
    assert logreader.last_lines(tmp_path, 0, 3, 100) == b"2\n3\n4\n"
    assert logreader.last_lines(tmp_path, 0, 3, 4) == b"3\n4\n"


async def test_unwritable_lines_are_lost_without_blocking_the_process(tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    writer = written(directory, b"1\n", size=1)
    directory.rename(tmp_path / "aside")
    os.write(writer.stdout, b"2\n")
    writer._read(writer._inputs[0])
    (tmp_path / "aside").rename(directory)
    os.write(writer.stdout, b"3\n")
    writer.close()
    assert await read(directory) == b"1\n3\n"


async def test_attached_reader_sees_new_output_by_stream(tmp_path: Path) -> None:
    writer = written(tmp_path, b"before\n")
    seen: list[tuple[str, bytes]] = []

    async def watch() -> None:
        seen.extend([piece async for piece in logreader.follow_new_output(tmp_path, writer)])

    watching = asyncio.create_task(watch())
    await asyncio.sleep(1)
    os.write(writer.stdout, b"out\nrest")
    os.write(writer.stderr, b"err\n")
    await asyncio.sleep(1)
    writer.close()
    await watching
    assert sorted(seen) == [("stderr", b"err\n"), ("stdout", b"out\n"), ("stdout", b"rest")]


async def test_end_of_each_kept_run_has_complete_lines(tmp_path: Path) -> None:
    for output in (b"lost\n", b"first\nlong " + b"x" * 50 + b"\nend\n", b"1\n2\n3\n"):
        writer = LogWriter(tmp_path, VirtualClock())
        os.write(writer.stdout, output)
        writer.close()
    assert logreader.last_lines_of_runs(tmp_path, 2, 100) == [b"long " + b"x" * 50 + b"\nend\n", b"2\n3\n"]
    assert logreader.last_lines_of_runs(tmp_path, 3, 20) == [b"end\n", b"1\n2\n3\n"]
    assert logreader.last_lines_of_runs(tmp_path, 3, 3) == [b"", b"3\n"]
    assert logreader.last_lines_of_runs(tmp_path / "absent", 3, 3) == []


async def test_followers_rest_as_long_as_they_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pauses, a reader that follows a log would slow down its writer. Each clock reading takes 10 ms."""
    clock = count(step=0.01)
    monkeypatch.setattr(time, "thread_time", lambda: next(clock))
    block = b"x" * (logreader.BLOCK - 1) + b"\n"
    writer = LogWriter(tmp_path, VirtualClock())
    wanted = LogOptions(container="main", follow=True)

    async def follow() -> int:
        seen = 0
        async for piece in logreader.read(tmp_path, 0, wanted, writer, START):
            seen += len(piece)
            if seen >= 10 * len(block):
                return seen
        return seen

    for _ in range(10):
        writer._append(writer._inputs[0].framer.feed(block, START))
    began = asyncio.get_running_loop().time()
    assert list(await asyncio.gather(follow(), follow())) == [10 * len(block)] * 2
    assert asyncio.get_running_loop().time() - began >= 0.01 * 2 * 9
    writer.close()


async def test_follower_far_behind_does_not_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old segments are removed, so a reader that pauses a second time would miss lines."""
    monkeypatch.setattr(time, "thread_time", count().__next__)
    writer = written(tmp_path, *(b"%d\n" % number for number in range(5)), size=1)
    loop = asyncio.get_running_loop()
    began = loop.time()
    lines = logreader.read(tmp_path, 0, LogOptions(container="main", follow=True), writer, START)
    assert [await anext(lines) for _ in range(3)] == [b"0\n", b"1\n", b"2\n"]
    assert loop.time() - began <= logreader.LONGEST_REST
    writer.close()


@given(
    st.lists(
        st.builds(
            b"%b %b %b %b\n".__mod__,
            st.tuples(
                st.sampled_from([b"2026-11-20T10:15:02.123456000Z", b"2026-11-20T10:15:0", b"2026"]),
                st.sampled_from([b"stdout", b"stderr"]),
                st.sampled_from([b"F", b"P", b"X"]),
                st.binary(max_size=60).map(lambda text: text.replace(b"\n", b"")),
            ),
        )
    ),
    st.booleans(),
)
def test_shown_lines_equal_their_entries(lines: list[bytes], timestamps: bool) -> None:
    entries = [entry for line in lines if (entry := logformat.parse(line))]
    options = LogOptions(container="main", timestamps=timestamps)
    assert list(logreader._render(lines, options, b"")) == [entry.render(timestamps=timestamps) for entry in entries]
