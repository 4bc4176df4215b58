"""A bounded buffer of bytes from a client that the pod has not read yet; `put` waits while it is full.

One task puts, another gets.
"""

import asyncio
from collections import deque
from typing import Final

LIMIT: Final = 2**20
"""Bytes above which `put` waits; the last part may exceed them."""


class Inbox:
    """The buffered bytes for one connection."""

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._ended = False
        self._closed = False
        self._filled = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    @property
    def is_full(self) -> bool:
        """Return whether `put` would wait."""
        return not self._room.is_set()

    async def put(self, data: bytes) -> None:
        """Add bytes; wait while the buffer is full."""
        await self._room.wait()
        if not self._closed:
            self._pieces.append(data)
            self._resize(len(data))
            self._filled.set()

    def end(self) -> None:
        """End the buffer: nothing more will be put."""
        self._ended = True
        self._filled.set()

    def close(self) -> None:
        """Drop the contents and everything put from now on; `get` returns the end."""
        self._closed = True
        self._pieces.clear()
        self.end()
        self._resize(-self._size)

    async def get(self) -> bytes:
        """Return the next bytes, empty at the end."""
        await self._filled.wait()
        if not self._pieces:
            return b""
        piece = self._pieces.popleft()
        self._resize(-len(piece))
        if not self._pieces and not self._ended:
            self._filled.clear()
        return piece

    def _resize(self, delta: int) -> None:
        self._size += delta
        if self._size < LIMIT:
            self._room.set()
        else:
            self._room.clear()
