"""JSON in the bytes that Go writes."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuberuntime.objects.gotypes.canonicaljson import (
    MAX_EXACT_INTEGER,
    canonical_json,
    canonical_object,
    is_same_json,
    written,
)


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
def test_canonical_json_is_what_go_writes(value: Any, expected: bytes) -> None:
    """R-REV-6.7 and R-REV-6.8."""
    assert canonical_json(value) == expected


TEXTS = ["", "<", "\\u003c", "1.5", ":1.5", ",12345678901234567", '":-1.5', "\\", "[1e5", "app:1", "1.1.1.1"]
"""Some look like a number outside of texts."""

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
    """Write as Go does, without looking for what can be written faster."""

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
def test_odd_numbers_are_found_wherever_they_are(value: Any) -> None:
    """R-REV-6.8: also beside texts that look like them."""
    assert canonical_json(value) == written_number_by_number(value)
    assert written(value).data == canonical_json(value)


@given(VALUES, VALUES)
def test_what_is_the_same_is_what_is_written_the_same(left: Any, right: Any) -> None:
    assert is_same_json(left, right) == (canonical_json(left) == canonical_json(right))


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 2**53}, {"a": 2**53 + 1}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"a": 2}, False),
    ],
)
def test_order_and_what_go_rounds_make_no_difference(left: Any, right: Any, *, same: bool) -> None:
    assert is_same_json(left, right) is same


@given(VALUES)
def test_what_is_written_is_what_is_read_again(value: Any) -> None:
    found = written(value)

    assert found.data == canonical_json(value)
    assert found.value == msgspec.json.decode(found.data)


@pytest.mark.parametrize("text", ["app:1.2", "a,1.5", "[1e5", 'x":1.5', '\\":12345678901234567', '"":1.5,["\\'])
@pytest.mark.parametrize("around", [lambda text: text, lambda text: [text, 1, text], lambda text: {"a": text, text: 1}])
def test_a_text_like_a_number_is_not_taken_for_one(text: str, around: Callable[[str], Any]) -> None:
    value = around(text)

    assert written(value).value is value
    assert written([value, 2**60 + 1]).value == [value, 1152921504606847000]


@given(st.dictionaries(st.sampled_from(["a", "b", "<", "é"]), VALUES), st.sets(st.sampled_from(["a", "<"])))
def test_an_object_is_put_together_from_what_is_known(value: Any, names: set[str]) -> None:
    known = {name: canonical_json(value[name]) for name in names & value.keys()}

    assert canonical_object(value, known) == canonical_json(value)
