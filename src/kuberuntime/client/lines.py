"""Splits a stream of chunks into lines of any length, wherever the chunks end.

aiohttp's own `readline` refuses lines over its buffer size; a pod with many annotations is longer than that.
"""

from collections.abc import AsyncGenerator, AsyncIterator


class LineSplitter:
    r"""Collects chunks and returns the lines they complete, without their ends and without empty ones.

    >>> splitter = LineSplitter()
    >>> splitter.feed(b'{"a"'), splitter.feed(b':1}\n{"b":2}\n{')
    ([], [b'{"a":1}', b'{"b":2}'])
    """

    def __init__(self) -> None:
        self._open: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take one chunk and return the lines that are complete now."""
        head, newline, rest = chunk.partition(b"\n")
        self._open.append(head)
        if not newline:
            return []
        first = b"".join(self._open)
        *lines, last = rest.split(b"\n")
        self._open = [last] if last else []
        return [line for line in (first, *lines) if line.strip()]


async def split(chunks: AsyncIterator[bytes]) -> AsyncGenerator[list[bytes], None]:
    """Yield the lines of a stream, those that arrived together in one list; an incomplete last line is dropped."""
    splitter = LineSplitter()
    async for chunk in chunks:
        lines = splitter.feed(chunk)
        if lines:
            yield lines
