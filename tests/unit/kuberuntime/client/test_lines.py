"""Lines come out whole, wherever the chunks end."""

from collections.abc import AsyncIterator

from hypothesis import given
from hypothesis import strategies as st
from tests.simulation.virtualtime import run

from kuberuntime.client.lines import LineSplitter, split


@given(st.lists(st.binary(min_size=1).filter(lambda line: b"\n" not in line and line.strip())), st.data())
def test_lines_do_not_depend_on_where_chunks_end(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    splitter = LineSplitter()

    found = [
        line
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)
        for line in splitter.feed(stream[start:end])
    ]

    assert found == lines


def test_a_line_of_ten_megabytes_in_small_chunks_is_put_together_in_linear_time() -> None:
    splitter = LineSplitter()
    for _ in range(2500):
        assert splitter.feed(b"x" * 4096) == []

    assert [len(line) for line in splitter.feed(b"\n")] == [2500 * 4096]


def test_empty_lines_and_an_unfinished_last_line_are_dropped() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for chunk in (b"a\n\n", b"\n", b"b\nc"):
            yield chunk

    async def scenario() -> list[list[bytes]]:
        return [batch async for batch in split(chunks())]

    assert run(scenario()) == [[b"a"], [b"b"]]
