"""Encodes JSON to the same bytes as Go: revisions are compared byte for byte with those of Go controllers."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from kuberuntime.objects import quantity
from kuberuntime.objects.meta import JSON, JSONObject

MAX_EXACT_INTEGER: Final = 2**53

_ESCAPES = [(char.encode(), b"\\u%04x" % ord(char)) for char in "<>&\u2028\u2029"]

_ODD = rb"-?(?:[0-9]{16}|[0-9]++[.eE])"
_ODD_NUMBER = re.compile(_ODD)
_AFTER = [re.compile(re.escape(before) + _ODD) for before in (b":", b",", b"[")]
"""One pattern for each byte that a number can follow: a pattern with a fixed first byte is found much faster."""

_CLASSES = bytes.maketrans(b"123456789eE,[", b"000000000..::")
"""Maps to one byte each: all digits, all bytes that make a number odd, and all that a number can follow."""

_LONG_NUMBERS = (b":" + b"0" * 16, b":-" + b"0" * 16)
_FRACTION_BACKWARDS = re.compile(rb"\.00*+-?:")
"""Backwards, since few bytes look like the point of a fraction, and every field has what precedes a number."""


@dataclass(frozen=True, slots=True)
class WrittenJSON:
    """A value as Go writes it: the bytes, and what is read from them, which is another value only where Go rounds."""

    data: bytes
    value: JSON


def written(value: JSON) -> WrittenJSON:
    """Write as Go writes a generic map: compact, sorted keys, HTML characters escaped (R-REV-6.7 and 6.8)."""
    encoded = _sorted(value)
    if not _holds_odd_numbers(encoded):
        return WrittenJSON(_escaped(encoded), value)
    encoded = _sorted(_with_numbers_of_go(value))
    return WrittenJSON(_escaped(encoded), msgspec.json.decode(encoded))


def canonical_json(value: JSON) -> bytes:
    r"""Return the bytes that Go writes for a generic map.

    >>> canonical_json({"b": "<&>", "a": [1, None]})
    b'{"a":[1,null],"b":"\\u003c\\u0026\\u003e"}'
    """
    encoded = _sorted(value)
    return _escaped(_sorted(_with_numbers_of_go(value)) if _holds_odd_numbers(encoded) else encoded)


def canonical_object(value: JSONObject, known: Mapping[str, bytes]) -> bytes:
    """Return the bytes that Go writes for an object of which those of some fields are known.

    >>> canonical_object({"b": 1, "a": {}}, {"a": b'{"c":2}'})
    b'{"a":{"c":2},"b":1}'
    """
    fields = ((name, known[name] if name in known else canonical_json(value[name])) for name in sorted(value))
    return b"{" + b",".join(canonical_json(name) + b":" + data for name, data in fields) + b"}"


def is_same_json(left: JSON, right: JSON) -> bool:
    """Return whether two values have the same canonical JSON, by a cheaper encoding where that decides.

    The cheaper encoding writes numbers and HTML characters not as Go does. Where it is equal, the canonical JSON is
    equal; where it differs, the canonical JSON can be equal only if a number is one that Go rounds.
    """
    ours, theirs = _sorted(left), _sorted(right)
    if ours == theirs:
        return True
    may_round = _holds_odd_numbers(ours) or _holds_odd_numbers(theirs)
    return may_round and canonical_json(left) == canonical_json(right)


def _sorted(value: JSON) -> bytes:
    return msgspec.json.encode(value, order="sorted")


def _escaped(encoded: bytes) -> bytes:
    for char, escaped in _ESCAPES:
        encoded = encoded.replace(char, escaped)
    return encoded


def _holds_odd_numbers(encoded: bytes) -> bool:
    """Return whether there is a number with a fraction or more than 15 digits, which a text may only look like.

    Versions of images do (`app:1.2`). Whether a place is within a text follows from the quotes before it.
    """
    if _ODD_NUMBER.match(encoded):
        return True
    if not _may_hold_odd_numbers(encoded):
        return False
    found = [pattern for pattern in _AFTER if pattern.search(encoded)]
    if not found:
        return False
    plain = encoded.replace(rb"\\", b"__").replace(rb"\"", b"__")
    return any(_is_outside_texts(plain, pattern) for pattern in found)


def _may_hold_odd_numbers(encoded: bytes) -> bool:
    """Return whether there is something like an odd number, in a text or not; C finds that out in few passes."""
    classes = encoded.translate(_CLASSES)
    if any(number in classes for number in _LONG_NUMBERS):
        return True
    return b"0." in classes and _FRACTION_BACKWARDS.search(classes[::-1]) is not None


def _is_outside_texts(encoded: bytes, pattern: re.Pattern[bytes]) -> bool:
    """Return whether the pattern occurs outside of texts; of these, no quote is escaped."""
    quotes = end = 0
    for found in pattern.finditer(encoded):
        quotes += encoded.count(b'"', end, found.start())
        end = found.start()
        if quotes % 2 == 0:
            return True
    return False


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
