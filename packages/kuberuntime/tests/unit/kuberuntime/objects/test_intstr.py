"""Tests numbers and percentages (R-ROLL-1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuberuntime.objects import intstr


@pytest.mark.parametrize(
    ("value", "whole", "down", "up"),
    [(3, 10, 3, 3), ("25%", 10, 2, 3), ("30%", 10, 3, 3), ("0%", 10, 0, 0), ("1%", 2, 0, 1), ("-50%", 3, -2, -1)],
)
def test_percentages_are_scaled_and_rounded(value: int | str, whole: int, down: int, up: int) -> None:
    assert (intstr.scale(value, whole, up=False), intstr.scale(value, whole, up=True)) == (down, up)


@given(st.integers(0, 100), st.integers(0, 1000))
def test_rounding_stays_within_one(percent: int, whole: int) -> None:
    down, up = intstr.scale(f"{percent}%", whole, up=False), intstr.scale(f"{percent}%", whole, up=True)
    assert down * 100 <= percent * whole <= up * 100
    assert up - down <= 1


def test_numbers_and_percentages_can_be_scaled() -> None:
    assert intstr.is_scalable(5)
    assert intstr.is_scalable("5%")


@pytest.mark.parametrize("value", ["5", "five", "%", "1.5%", "9" * 19 + "%"])
def test_text_that_is_not_a_percentage_cannot_be_scaled(value: str) -> None:
    assert not intstr.is_scalable(value)
    with pytest.raises(ValueError, match="is neither a number nor a percentage"):
        intstr.scale(value, 1, up=True)
    with pytest.raises(ValueError, match="invalid value for IntOrString"):
        intstr.scale(value, 1, up=False)


@pytest.mark.parametrize(
    ("value", "exceeds"),
    [
        ("100%", False),
        ("0%", False),
        ("00100%", False),
        ("101%", True),
        ("9" * 5000 + "%", True),
        (500, False),
        ("x", False),
    ],
)
def test_exceeds_whole_compares_with_the_whole(value: int | str, exceeds: bool) -> None:
    assert intstr.exceeds_whole(value) is exceeds
