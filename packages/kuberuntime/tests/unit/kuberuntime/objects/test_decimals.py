"""Tests that integers are parsed as by `strconv`, with a limited length."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuberuntime.objects import decimals, ordinals

HUGE = "9" * 4301
"""Python's `int` rejects this number of digits."""


@pytest.mark.parametrize("text", ["", "-", "1.0", " 1", "1\n", "1_0", "٣", "0x1", HUGE, str(2**63)])
def test_text_that_is_not_a_64_bit_integer_is_none(text: str) -> None:
    assert (decimals.natural(text), decimals.integer(text)) == (None, None)


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_64_bit_integer_is_read(number: int) -> None:
    assert decimals.integer(str(number)) == number
    assert decimals.natural(str(number)) == (number if number >= 0 else None)


def test_integer_below_64_bits_is_none() -> None:
    assert decimals.integer(str(-(2**63) - 1)) is None


def test_name_with_a_huge_ordinal_is_not_split() -> None:
    assert ordinals.split(f"web-{HUGE}") is None
