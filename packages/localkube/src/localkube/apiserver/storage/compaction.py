"""Limits the retained history by the number of revisions and by their size in bytes."""

from array import array
from itertools import islice
from typing import Final

BYTES: Final = 16 * 2**20
"""The maximum history size in bytes. After a longer interruption of a watch, the client lists objects."""


class RetainedRevisions:
    """The sizes of the retained revisions, oldest first. Revisions are consecutive, so their numbers are not stored."""

    def __init__(self, revisions: int, size: int = BYTES) -> None:
        self._revisions = revisions
        self._limit = size
        self._size = 0
        self._sizes = array("q")

    def add(self, size: int) -> None:
        """Add the next revision."""
        self._sizes.append(size)
        self._size += size

    def expired(self, retained: int, every: int) -> int:
        """Return the number of `retained` revisions to drop, or 0 if fewer than `every` revisions exceed the limit.

        If the byte limit is exceeded, drop revisions down to half of the limit, but keep the latest revision.
        """
        surplus = max(retained - self._revisions, 0)
        if self._size <= self._limit:
            return surplus if surplus >= every else 0
        remaining, count = self._size, 0
        for size in islice(self._sizes, len(self._sizes) - 1):
            if remaining <= self._limit // 2:
                break
            remaining -= size
            count += 1
        return max(count, surplus)

    def drop(self, count: int) -> None:
        """Remove the oldest revisions."""
        self._size -= sum(self._sizes[:count])
        del self._sizes[:count]
