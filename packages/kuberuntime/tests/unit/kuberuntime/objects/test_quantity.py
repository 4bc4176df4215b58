"""Tests the parsing and the canonical form of quantities (R-REV-6.6)."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testkit.examples import examples

from kuberuntime.objects import quantity
from kuberuntime.objects.quantity import QuantityError, canonical, canonical_list, parse


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        # The contract's.
        ("0.5", "500m"), ("1000m", "1"), ("2.50", "2500m"), ("1024Mi", "1Gi"), ("1.5Gi", "1536Mi"), ("0.5Gi", "512Mi"),
        ("1000Ki", "1000Ki"), ("129e6", "129e6"), ("1e3", "1e3"), ("1000Mi", "1000Mi"), ("128974848", "128974848"),
        # Zero has no suffix in any notation.
        ("0", "0"), ("0Gi", "0"), ("0e5", "0"), (0, "0"), ("-0", "0"),
        # Numbers as they appear in YAML.
        (0.5, "500m"), (3, "3"), (1e21, "1e21"),
        # Small binary amounts and fractions of bytes have decimal suffixes.
        ("512", "512"), ("0.5Ki", "512"), ("0.0001Ki", "102400u"), ("1025Mi", "1025Mi"), ("1.0001Ki", "1024102400u"),
        # Exponents are multiples of three.
        ("12e2", "1200"), ("1E3", "1e3"), ("1e-1", "100e-3"), ("5e4", "50e3"), ("1e21", "1e21"),
        # The largest possible suffix is used.
        ("1000000", "1M"), ("1000000k", "1G"), ("5E", "5E"), ("1000E", "1000E"), ("1500m", "1500m"), ("+2", "2"),
        ("1k", "1k"), ("1G", "1G"), ("1000G", "1T"), ("1000T", "1P"), ("1000P", "1E"), ("1u", "1u"), ("1000n", "1u"),
        ("1024Gi", "1Ti"), ("1024Ti", "1Pi"), ("1024Pi", "1Ei"), ("1Ei", "1Ei"), ("1024Ki", "1Mi"),
        # Values below 1n are rounded away from zero.
        ("0.1n", "1n"), ("-0.1n", "-1n"), ("1.5n", "2n"), ("-1500m", "-1500m"),
        # Values are limited to 2^63 - 1 in the long form.
        ("99Ei", "9223372036854775807"), ("9999999999999999999", "9223372036854775807"),
        ("999999999999999999k", "999999999999999999k"), ("10.00000000000000000E", "9223372036854775807"), ("9999999999999999999999", "9223372036854775807"),
        # Digits on one side of the decimal point are sufficient.
        ("1.", "1"), (".5", "500m"), (" 1 ", "1"), ("007", "7"),
    ],
)  # fmt: skip
def test_canonical_form_is_stable(value: Any, expected: str) -> None:
    assert canonical(value) == expected
    assert canonical(expected) == expected


@pytest.mark.parametrize(
    "value", ["", ".", "-", "1x", "1 Gi", "1ki", "1KI", "e3", "1e", "1e+", "0x10", "1_000", "1.2.3", "9" * 101, "m"]
)
def test_malformed_quantity_is_rejected(value: str) -> None:
    with pytest.raises(QuantityError, match="must be a quantity such as"):
        parse(value)


@pytest.mark.parametrize("value", [True, None, [], {}])
def test_quantity_of_a_different_type_is_rejected(value: Any) -> None:
    with pytest.raises(QuantityError, match="a number, or a string"):
        parse(value)


def test_huge_exponent_is_rejected() -> None:
    with pytest.raises(QuantityError, match="exponent from -99 to 99"):
        parse("1e100")


AMOUNTS = st.builds(
    lambda digits, suffix: f"{digits}{suffix}",
    st.integers(-(10**6), 10**6),
    st.sampled_from(["", "n", "u", "m", "k", "M", "Ki", "Mi", "Gi", "e3", "e-3"]),
)


@given(AMOUNTS)
def test_canonical_form_keeps_the_amount(text: str) -> None:
    amount = parse(text)
    assert parse(str(amount)) == amount
    assert canonical(str(amount)) == str(amount)


@given(AMOUNTS, AMOUNTS)
def test_sums_and_order_agree_with_fractions(left: str, right: str) -> None:
    a, b = parse(left), parse(right)
    assert (a + b).fraction() == a.fraction() + b.fraction()
    assert (a - b).fraction() == a.fraction() - b.fraction()
    assert (a < b, a <= b, a == b) == tuple(
        compare(a.fraction(), b.fraction()) for compare in (Fraction.__lt__, Fraction.__le__, Fraction.__eq__)
    )
    assert (a == b) == (hash(a) == hash(b))


def test_arithmetic_returns_canonical_quantities() -> None:
    assert str(parse("100m") * 3) == "300m"
    assert str(quantity.sum_quantities([parse("1Gi"), parse("512Mi")])) == "1536Mi"
    assert str(quantity.sum_quantities([])) == "0"
    assert parse("1500m").ceil() == 2
    assert not parse("0")
    assert parse("1n")
    assert parse("1") != 1
    assert quantity.parse_list({"cpu": "1", "memory": 1024}) == {"cpu": parse("1"), "memory": parse("1Ki")}
    assert quantity.parse_list(None) == {}


WHOLE_AMOUNTS = st.builds(
    "{}{}".format,
    st.integers(0, 10**7)
    | st.integers(0, 10**4).map(lambda number: number * 1024)
    | st.integers(0, 99).map("00{}".format),
    st.sampled_from(["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "ni", "\n"]),
)


@given(st.lists(WHOLE_AMOUNTS))
@settings(max_examples=examples(50))
def test_list_of_amounts_equals_its_single_amounts(amounts: list[str]) -> None:
    resources = {str(index): amount for index, amount in enumerate(amounts)}
    try:
        expected = {name: str(parse(amount)) for name, amount in resources.items()}
    except QuantityError:
        with pytest.raises(QuantityError):
            canonical_list(resources)
    else:
        assert canonical_list(resources) == expected
