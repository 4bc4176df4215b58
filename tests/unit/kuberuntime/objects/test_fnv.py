"""FNV-1 in lanes is FNV-1 byte by byte."""

from random import Random

import pytest

from kuberuntime.objects.fnv import LANES, LONG, MOST, OFFSET, PRIME, fnv1


def byte_by_byte(data: bytes) -> int:
    value = OFFSET
    for byte in data:
        value = (value * PRIME & MOST) ^ byte
    return value


@pytest.mark.parametrize(("data", "expected"), [(b"", 0x811C9DC5), (b"a", 0x050C5D7E), (b"foobar", 0x31F0B262)])
def test_the_vectors_of_its_authors(data: bytes, expected: int) -> None:
    assert fnv1(data) == expected


@pytest.mark.parametrize("size", [LONG - 1, LONG, LONG + 1, LONG + LANES - 1, LONG + LANES, 100_003])
@pytest.mark.parametrize("seed", range(4))
def test_long_data_has_the_same_hash(size: int, seed: int) -> None:
    data = Random(seed).randbytes(size)
    assert fnv1(data) == byte_by_byte(data)


@pytest.mark.parametrize("byte", [0x00, 0x01, 0x7F, 0x80, 0xFF])
def test_long_data_of_one_byte_has_the_same_hash(byte: int) -> None:
    data = bytes([byte]) * (LONG + 5)
    assert fnv1(data) == byte_by_byte(data)


@pytest.mark.parametrize("place", [0, 1, LANES, LONG // 2, LONG - 1, LONG + 6])
@pytest.mark.parametrize("bit", range(8))
def test_each_bit_of_long_data_counts(place: int, bit: int) -> None:
    data = bytearray(Random(1).randbytes(LONG + 7))
    data[place] ^= 1 << bit
    assert fnv1(bytes(data)) == byte_by_byte(bytes(data))
