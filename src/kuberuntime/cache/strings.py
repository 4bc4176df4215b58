"""Strings that repeat, kept once: label keys and values, names, reasons of many objects.

`sys.intern` does not fit: in some Pythons (3.12) what it takes lives for ever, and UIDs and names never end. Here at most
two generations of texts are remembered; one that is met again within a generation moves on, the others are forgotten.
"""

from typing import Final

MOST: Final = 2048
"""Texts in a generation."""

LONGEST: Final = 256
"""Characters of a text that is worth sharing: label keys and values, names, reasons. Longer ones hardly repeat."""


class Strings:
    """Returns for each text an equal one that was met before, if it was met lately.

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
        """Return the text, or the equal one that is shared already."""
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
