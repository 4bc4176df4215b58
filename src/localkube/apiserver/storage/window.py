"""The retained history: a number of revisions or a number of bytes, whichever is less."""

from collections import deque
from dataclasses import dataclass
from typing import Final

CHUNK: Final = 100
"""Revisions that are dropped together."""

BYTES: Final = 16 * 2**20
"""Bytes of objects in the retained history. A watch that was interrupted for longer lists again."""


@dataclass(slots=True)
class _Chunk:
    last: int
    revisions: int = 0
    size: int = 0


class Window:
    """Counts the retained revisions and their bytes."""

    def __init__(self, revisions: int, size: int = BYTES) -> None:
        self._revisions = revisions
        self._limit = size
        self._size = 0
        self._chunks: deque[_Chunk] = deque()

    def add(self, revision: int, size: int) -> None:
        """Add a revision."""
        full = not self._chunks or self._chunks[-1].revisions >= CHUNK or self._chunks[-1].size >= self._limit // CHUNK
        if full:
            self._chunks.append(_Chunk(revision))
        chunk = self._chunks[-1]
        chunk.last = revision
        chunk.revisions += 1
        chunk.size += size
        self._size += size

    def expired(self, revision: int, forgotten: int, every: int) -> int:
        """Return the revision up to which history is to be dropped; `forgotten` if that would be fewer than `every`.

        Revisions above the limit of bytes are dropped at once, down to half of it.
        """
        until = revision - self._revisions
        if self._size > self._limit:
            until = max(until, self._last_beyond(self._limit // 2))
        elif until < forgotten + every:
            return forgotten
        while self._chunks and self._chunks[0].last <= until:
            self._size -= self._chunks.popleft().size
        return max(until, forgotten)

    def _last_beyond(self, size: int) -> int:
        """Return the last revision of the chunks above this size; the newest chunk is kept."""
        excess, last = self._size - size, 0
        for chunk in list(self._chunks)[:-1]:
            if excess <= 0:
                break
            excess -= chunk.size
            last = chunk.last
        return last
