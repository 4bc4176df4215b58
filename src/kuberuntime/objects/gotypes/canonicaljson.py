"""JSON in the bytes that Go writes: revisions are compared byte for byte with those of Go controllers."""

import json
import re
from typing import Final

import msgspec

from kuberuntime.objects import quantity
from kuberuntime.objects.meta import JSON

MAX_EXACT_INTEGER: Final = 2**53

_ESCAPES = [(char.encode(), b"\\u%04x" % ord(char)) for char in "<>&\u2028\u2029"]

_ODD_NUMBER = rb"-?[0-9]+(?:[0-9]{15}|[.eE])"
_ODD_NUMBERS = [re.compile(before + _ODD_NUMBER) for before in (rb"^", rb":", rb",", rb"\[")]
"""One pattern for each byte that a number can follow: a pattern with one beginning is searched for much faster."""


def canonical_json(value: JSON) -> bytes:
    r"""Encode as Go encodes a generic map: compact, sorted keys, HTML characters escaped (R-REV-6.7 and 6.8).

    >>> canonical_json({"b": "<&>", "a": [1, None]})
    b'{"a":[1,null],"b":"\\u003c\\u0026\\u003e"}'
    """
    encoded = msgspec.json.encode(value, order="sorted")
    if _may_hold_odd_numbers(encoded):
        encoded = msgspec.json.encode(_with_numbers_of_go(value), order="sorted")
    for char, escaped in _ESCAPES:
        encoded = encoded.replace(char, escaped)
    return encoded


def _may_hold_odd_numbers(encoded: bytes) -> bool:
    """Return whether there may be a number with a fraction or more than 15 digits; a text may look like one."""
    return any(pattern.search(encoded) for pattern in _ODD_NUMBERS)


def _with_numbers_of_go(value: JSON) -> JSON:
    """Give numbers the digits to write: those that Go prints for an integer that a float64 cannot hold."""
    if isinstance(value, dict):
        return {name: _with_numbers_of_go(child) for name, child in value.items()}
    if isinstance(value, list):
        return [_with_numbers_of_go(child) for child in value]
    if isinstance(value, float):
        return msgspec.Raw(json.dumps(value).encode())
    if isinstance(value, int) and abs(value) > MAX_EXACT_INTEGER:
        return msgspec.Raw(str(int(quantity.parse(repr(float(value))).fraction())).encode())
    return value
