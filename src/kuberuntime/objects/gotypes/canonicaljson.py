"""Encodes JSON to the same bytes as Go: revisions are compared byte for byte with those of Go controllers."""

import json
import re
from typing import Final

import msgspec

from kuberuntime.objects import quantity
from kuberuntime.objects.meta import JSON

MAX_EXACT_INTEGER: Final = 2**53

_ESCAPES = [(char.encode(), b"\\u%04x" % ord(char)) for char in "<>&\u2028\u2029"]
_ODD_NUMBER = re.compile(rb"[:,\[]-?(?:[0-9]{16}|[0-9]++[.eE])")
"""A number with a fraction or more than 15 digits, or a text that looks like one, as the version of an image may."""


def canonical_json(value: JSON) -> bytes:
    r"""Return the bytes that Go writes for a generic map: compact, sorted keys, HTML characters escaped (R-REV-6.7, 6.8).

    >>> canonical_json({"b": "<&>", "a": [1, None]})
    b'{"a":[1,null],"b":"\\u003c\\u0026\\u003e"}'
    """
    encoded = msgspec.json.encode(value, order="sorted")
    if _ODD_NUMBER.search(b":" + encoded):
        encoded = msgspec.json.encode(_with_numbers_of_go(value), order="sorted")
    for char, escaped in _ESCAPES:
        encoded = encoded.replace(char, escaped)
    return encoded


def _with_numbers_of_go(value: JSON) -> JSON:
    """Replace numbers by the digits to write: for an integer that a float64 cannot hold, those that Go prints."""
    if isinstance(value, dict):
        return {name: _with_numbers_of_go(child) for name, child in value.items()}
    if isinstance(value, list):
        return [_with_numbers_of_go(child) for child in value]
    if isinstance(value, float):
        return msgspec.Raw(json.dumps(value).encode())
    if isinstance(value, int) and abs(value) > MAX_EXACT_INTEGER:
        return msgspec.Raw(str(int(quantity.parse(repr(float(value))).fraction())).encode())
    return value
