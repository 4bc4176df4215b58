"""Tests that lines are complete regardless of chunk boundaries."""

from collections.abc import AsyncIterator, Iterable

from hypothesis import given
from hypothesis import strategies as st
from testkit.virtualtime import run

from kuberuntime.client.lines import split


def batches(chunks: Iterable[bytes]) -> list[list[bytes]]:
    async def stream() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    async def scenario() -> list[list[bytes]]:
        return [batch async for batch in split(stream())]

    return run(scenario())


@given(st.lists(st.binary(min_size=1).filter(lambda line: b"\n" not in line and line.strip())), st.data())
def test_lines_do_not_depend_on_chunk_boundaries(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    chunks = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert [line for batch in batches(chunks) for line in batch] == lines


def test_long_line_in_small_chunks_is_joined_in_linear_time() -> None:
    assert [len(line) for line in batches([b"x" * 4096] * 2500 + [b"\n"])[0]] == [2500 * 4096]


def test_empty_lines_and_an_unfinished_last_line_are_dropped() -> None:
    assert batches((b"a\n\n", b"\n", b"b\nc")) == [[b"a"], [b"b"]]
