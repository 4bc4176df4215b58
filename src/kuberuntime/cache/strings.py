"""Shares equal strings of many objects (label keys and values, names, reasons), so that each is stored once.

`sys.intern` is not suitable: in some versions of Python (3.12) interned strings are never freed, while new UIDs and
names keep coming. `Strings` remembers at most two generations: a string that is seen again moves to the new generation,
the others are dropped.

All caches of a process share one (`SHARED`). Most strings are seen once, so the memory fills up in any case: with one
for each cache it would sooner or later be half a MiB for each.
"""

from typing import Final

MOST: Final = 2048
"""Strings per generation."""

LONGEST: Final = 256
"""Characters of the longest string that is shared. Longer strings hardly repeat."""


class Strings:
    """Returns for each string an equal one that was seen recently, if there is one.

    >>> strings = Strings()
    >>> one, other = "".join(["a", "b"]), "".join(["a", "b"])
    >>> one is other, strings.share(one) is strings.share(other)
    (False, True)
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._young: dict[str, str] = {}
        self._old: dict[str, str] = {}

    def share(self, text: str) -> str:
        """Return the string, or the equal one that is already shared."""
        if len(text) > LONGEST:
            return text
        found = self._young.get(text)
        if found is None:
            found = self._old.get(text, text)
            if len(self._young) >= self._most:
                self._old, self._young = self._young, {}
            self._young[found] = found
        return found

    def __len__(self) -> int:
        return len(self._young) + len(self._old)


SHARED: Final = Strings()
"""Those of all caches of this process; labels, names and UIDs of one kind are met again in others."""
