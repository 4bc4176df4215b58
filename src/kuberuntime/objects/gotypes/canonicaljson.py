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
    encoded = _sorted(value)
    if _may_hold_odd_numbers(encoded):
        encoded = _sorted(_with_numbers_of_go(value))
    for char, escaped in _ESCAPES:
        encoded = encoded.replace(char, escaped)
    return encoded


def is_same_json(left: JSON, right: JSON) -> bool:
    """Return whether two values have the same canonical JSON, without writing it where a cheaper text decides.

    The text before numbers and HTML characters are written as Go does differs in about all values that differ, and is
    the same in all that are the same but for numbers that Go rounds.
    """
    ours, theirs = _sorted(left), _sorted(right)
    if ours == theirs:
        return True
    may_round = _may_hold_odd_numbers(ours) or _may_hold_odd_numbers(theirs)
    return may_round and canonical_json(left) == canonical_json(right)


def _sorted(value: JSON) -> bytes:
    return msgspec.json.encode(value, order="sorted")


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
