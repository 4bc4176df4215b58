"""Tests the 32-bit FNV-1 hash."""

import pytest

from kuberuntime.objects.fnv import fnv1


@pytest.mark.parametrize(("data", "expected"), [(b"", 0x811C9DC5), (b"a", 0x050C5D7E), (b"foobar", 0x31F0B262)])
def test_hashes_equal_the_published_vectors(data: bytes, expected: int) -> None:
    assert fnv1(data) == expected
