"""Encodes JSON to the same bytes as Go, because revisions of Go controllers are compared byte by byte."""

import json
from typing import Final

import msgspec

from kuberuntime.objects import quantity
from kuberuntime.objects.meta import JSON

MAX_EXACT_INTEGER: Final = 2**53

_ESCAPES = [(char.encode(), b"\\u%04x" % ord(char)) for char in "<>&\u2028\u2029"]
_DIGITS: Final = bytes.maketrans(b"123456789E", b"000000000e")


def canonical_json(value: JSON) -> bytes:
    r"""Encode a generic map like Go.

    The JSON is compact, with sorted keys and escaped HTML characters (R-REV-6.7, 6.8).

    >>> canonical_json({"b": "<&>", "a": [1, None]})
    b'{"a":[1,null],"b":"\\u003c\\u0026\\u003e"}'
    """
    encoded = msgspec.json.encode(value, order="sorted")
    if _needs_number_formatting(encoded):
        encoded = msgspec.json.encode(_format_numbers(value), order="sorted")
    for char, escaped in _ESCAPES:
        encoded = encoded.replace(char, escaped)
    return encoded


def _needs_number_formatting(encoded: bytes) -> bool:
    """Return whether the JSON contains a number with a fraction or with more than 15 digits."""
    if b"\\" in encoded:
        encoded = encoded.replace(rb"\\", b"").replace(rb"\"", b"")
    outside_texts = b"".join(encoded.split(b'"')[::2]).translate(_DIGITS)
    return any(odd in outside_texts for odd in (b"0.", b"0e", b"0" * 16))


def _format_numbers(value: JSON) -> JSON:
    """Format numbers like Go. The digits differ for integers that a float64 cannot represent."""
    if isinstance(value, dict):
        return {name: _format_numbers(child) for name, child in value.items()}
    if isinstance(value, list):
        return [_format_numbers(child) for child in value]
    if isinstance(value, float):
        return msgspec.Raw(json.dumps(value).encode())
    if isinstance(value, int) and abs(value) > MAX_EXACT_INTEGER:
        return msgspec.Raw(str(int(quantity.parse(repr(float(value))).fraction())).encode())
    return value
