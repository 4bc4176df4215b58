"""Generates UIDs and the random parts of names."""

from random import Random
from typing import Final
from uuid import UUID

from msgspec import Struct, field

from kuberuntime import randomness

NAME_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Letters and digits that do not form words and are easy to distinguish."""


class Identities(Struct, frozen=True):
    """Generates UIDs and names. In simulations, it is seeded."""

    source: Random = field(default_factory=randomness.source)

    def uid(self) -> str:
        """Return a new UID."""
        return str(UUID(int=self.source.getrandbits(128), version=4))

    def suffix(self) -> str:
        """Return five random characters to append to `generateName`."""
        return "".join(self.source.choices(NAME_ALPHABET, k=5))
