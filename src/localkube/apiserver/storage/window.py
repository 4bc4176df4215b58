"""How much of the history is kept: a number of revisions or a number of bytes, whichever is less."""

from collections import deque
from dataclasses import dataclass
from typing import Final

CHUNK: Final = 100
"""Revisions that are forgotten together."""

BYTES: Final = 16 * 2**20
"""Bytes of objects in the remembered history. A watch that was away for longer lists anew."""


@dataclass(slots=True)
class _Chunk:
    last: int
    revisions: int = 0
    size: int = 0


class Window:
    """Counts the remembered revisions and their bytes."""

    def __init__(self, revisions: int, size: int = BYTES) -> None:
        self._revisions = revisions
        self._limit = size
        self._size = 0
        self._chunks: deque[_Chunk] = deque()

    def add(self, revision: int, size: int) -> None:
        """Remember one more revision."""
        full = not self._chunks or self._chunks[-1].revisions >= CHUNK or self._chunks[-1].size >= self._limit // CHUNK
        if full:
            self._chunks.append(_Chunk(revision))
        chunk = self._chunks[-1]
        chunk.last = revision
        chunk.revisions += 1
        chunk.size += size
        self._size += size

    def expired(self, revision: int, forgotten: int, every: int) -> int:
        """Return until where the history is to be forgotten now; `forgotten` as long as less than `every` would go.

        What exceeds the bytes goes at once, and half of the bytes with it.
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
        """Return the last revision of the chunks that are too many; the newest chunk stays."""
        excess, last = self._size - size, 0
        for chunk in list(self._chunks)[:-1]:
            if excess <= 0:
                break
            excess -= chunk.size
            last = chunk.last
        return last
