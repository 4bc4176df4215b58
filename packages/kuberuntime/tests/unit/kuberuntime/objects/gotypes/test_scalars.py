"""Tests that scalars with a special syntax are parsed and printed as in Go, with the same errors."""

from typing import Any

import pytest

from kuberuntime.objects.gotypes import scalars
from kuberuntime.objects.gotypes.scalars import Amounts, Base64, MicroTime, QuantityText, Scalar, Time

LAYOUT = "2006-01-02T15:04:05Z07:00"


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (QuantityText, 0.5, "500m"),
        (Time, "2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z"),
        (Time, "2026-01-31T13:00:00.5+01:00", "2026-01-31T12:00:00Z"),
        (MicroTime, "2026-01-28T12:00:00.000001Z", "2026-01-28T12:00:00.000001Z"),
        (MicroTime, "2026-01-31T13:00:00+01:00", "2026-01-31T12:00:00.000000Z"),
        (Base64, "YQ==", "YQ=="),
    ],
)
def test_scalar_becomes_canonical(kind: type[Scalar], value: Any, text: str) -> None:
    """Quantities, times and durations have their canonical form (R-REV-6.6)."""
    assert scalars.encode(scalars.decode(kind, value)) == text


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (QuantityText, "much", "quantities must match the regular expression"),
        (Time, 5, "expected a string, got 5"),
        (Time, "yesterday", f'parsing time "yesterday" as "{LAYOUT}": cannot parse "yesterday" as "2006"'),
        (Time, "2026-13-01T00:00:00Z", 'parsing time "2026-13-01T00:00:00Z": month out of range'),
        (Time, "2026-02-30T00:00:00Z", 'parsing time "2026-02-30T00:00:00Z": day out of range'),
        (Time, "2026-01-01T00:00:00ZZ", 'parsing time "2026-01-01T00:00:00ZZ": extra text: "Z"'),
        (Time, "2026-01-31T12:00:00", f'as "{LAYOUT}": cannot parse "" as "Z07:00"'),
        (MicroTime, "9999-12-31T23:59:59-01:00", "out of range"),
        (Base64, "a", "illegal base64 data"),
    ],
)
def test_unreadable_scalar_error_states_the_reason(kind: type[Scalar], value: Any, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared below
        scalars.decode(kind, value)
    assert message in str(caught.value)


def test_non_scalar_values_are_rejected() -> None:
    with pytest.raises(TypeError, match="object is not a scalar of JSON"):
        scalars.encode(object())


@pytest.mark.parametrize("amounts", [{"a" * 300: "1"}, {"cpu": 1}, {f"r{n}": "1" for n in range(5)}])
def test_long_or_unusual_amounts_are_not_cached(amounts: dict[str, Any]) -> None:
    """A thousand changes of one object must not fill the memory of the manager."""
    known = scalars._few_amounts.cache_info().currsize
    read = scalars.decode(Amounts, amounts)
    assert isinstance(read, Amounts)
    assert set(read) == set(amounts)
    assert scalars._few_amounts.cache_info().currsize == known


def test_short_amounts_are_shared() -> None:
    assert scalars.decode(Amounts, {"cpu": "1000m"}) is scalars.decode(Amounts, {"cpu": "1000m"})
    assert scalars.decode(QuantityText, "1000m") is scalars.decode(QuantityText, "1000m")
