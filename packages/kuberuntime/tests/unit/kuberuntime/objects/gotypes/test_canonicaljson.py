"""Tests that JSON is encoded to the same bytes as in Go."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuberuntime.objects.gotypes.canonicaljson import MAX_EXACT_INTEGER, canonical_json


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"b": 1, "a": {"d": None, "c": True}}, b'{"a":{"c":true,"d":null},"b":1}'),
        ("<a> & b\u2028\u2029", rb'"\u003ca\u003e \u0026 b\u2028\u2029"'),
        ("\b\f\n\r\t\x07\x1f", rb'"\b\f\n\r\t\u0007\u001f"'),
        ('"\\/', rb'"\"\\/"'),
        ("é中\x7f😀", '"é中\x7f😀"'.encode()),
        ([2**53, -(2**53) - 1, 2**63 - 1], b"[9007199254740992,-9007199254740992,9223372036854776000]"),
        ([], b"[]"),
        ([2**64, -(2**65)], b"[18446744073709552000,-36893488147419103000]"),
        (10**15 + 1, b"1000000000000001"),
        (2**60 + 1, b"1152921504606847000"),
        ({"a": 0.5, "b": 1e16, "c": -2.5e-7}, b'{"a":0.5,"b":1e+16,"c":-2.5e-07}'),
        ({"a:-12345678901234567": ",1.5", "b": "[1e5"}, b'{"a:-12345678901234567":",1.5","b":"[1e5"}'),
        ({"z": {"b": 0, "a": 1}, "é": [], "😀": 1, "": 2}, '{"":2,"z":{"a":1,"b":0},"é":[],"😀":1}'.encode()),
    ],
)
def test_canonical_json_equals_the_output_of_go(value: Any, expected: bytes) -> None:
    """Revision data is encoded to the same bytes as in Go (R-REV-6.7 and R-REV-6.8)."""
    assert canonical_json(value) == expected


TEXTS = ["", "<", "\\u003c", "1.5", ":1.5", ",12345678901234567", '":-1.5', "\\", "[1e5", "app:1", "1.1.1.1"]
"""Strings that contain the characters of numbers."""

NUMBERS = st.sampled_from(
    [
        0,
        -1,
        -0.5,
        -(10**16),
        123456789012345,
        1234567890123456,
        1,
        True,
        1.0,
        0.5,
        2**53,
        2**53 + 1,
        2**63 - 1,
        1e16,
        10**16,
    ]
)
VALUES = st.recursive(
    st.none() | NUMBERS | st.sampled_from(TEXTS),
    lambda children: st.lists(children, max_size=2) | st.dictionaries(st.sampled_from("ab<"), children, max_size=2),
    max_leaves=4,
)


def written_number_by_number(value: Any) -> bytes:
    """Encode JSON as Go does, without the fast path."""

    def rounded(part: Any) -> Any:
        if isinstance(part, dict):
            return {name: rounded(child) for name, child in part.items()}
        if isinstance(part, list):
            return [rounded(child) for child in part]
        is_large = type(part) is int and abs(part) > MAX_EXACT_INTEGER
        return int(Decimal(repr(float(part)))) if is_large else part

    text = json.dumps(rounded(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text.encode()


@given(VALUES)
def test_unusual_numbers_are_found_anywhere(value: Any) -> None:
    """Unusual numbers are also found next to strings that look similar (R-REV-6.8)."""
    assert canonical_json(value) == written_number_by_number(value)
