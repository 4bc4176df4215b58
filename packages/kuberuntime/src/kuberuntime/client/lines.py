"""Splits a stream of chunks into lines of any length, wherever the chunks end.

aiohttp's own `readline` refuses lines over its buffer size; a pod with many annotations is longer than that buffer.
"""

from collections.abc import AsyncGenerator, AsyncIterator


async def split(chunks: AsyncIterator[bytes]) -> AsyncGenerator[list[bytes], None]:
    """Yield the lines that each chunk completes, without empty ones; an incomplete last line is dropped."""
    pieces: list[bytes] = []
    async for chunk in chunks:
        head, newline, rest = chunk.partition(b"\n")
        pieces.append(head)
        if newline:
            *lines, last = b"".join(pieces), *rest.split(b"\n")
            pieces = [last] if last else []
            if whole := [line for line in lines if line.strip()]:
                yield whole
