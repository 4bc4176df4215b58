"""Computes 32-bit FNV-1 hashes, as in Go's `hash/fnv`.

For each byte, multiply by a prime, then apply exclusive or. FNV-1a uses the reverse order.
"""

from typing import Final

OFFSET: Final = 2166136261
PRIME: Final = 16777619
MOST: Final = 0xFFFFFFFF
"""The maximum 32-bit hash."""


def fnv1(data: bytes) -> int:
    """Return the FNV-1 hash of the data. Hashing 1.5 MiB requires about 0.1 s.

    >>> fnv1(b""), fnv1(b"a"), fnv1(b"foobar")
    (2166136261, 84696446, 837857890)
    """
    value, prime, most = OFFSET, PRIME, MOST  # local names are 20 % faster
    for byte in data:
        value = (value * prime & most) ^ byte
    return value


def fnv1a(data: bytes) -> int:
    """Return the FNV-1a hash of the data.

    >>> fnv1a(b""), fnv1a(b"a"), fnv1a(b"foobar")
    (2166136261, 3826002220, 3214735720)
    """
    value = OFFSET
    for byte in data:
        value = (value ^ byte) * PRIME & MOST
    return value
