"""Splits a chunked stream into lines of any length.

aiohttp's own `readline` rejects lines that exceed its buffer, such as a pod with many annotations.
"""

from collections.abc import AsyncGenerator, AsyncIterator


async def split(chunks: AsyncIterator[bytes]) -> AsyncGenerator[list[bytes], None]:
    """Yield the non-empty lines that each chunk completes. Discard an incomplete last line."""
    pieces: list[bytes] = []
    async for chunk in chunks:
        head, newline, rest = chunk.partition(b"\n")
        pieces.append(head)
        if newline:
            *lines, last = b"".join(pieces), *rest.split(b"\n")
            pieces = [last] if last else []
            if complete_lines := [line for line in lines if line.strip()]:
                yield complete_lines
