"""Detects that Go would write a value differently from another one, without reading it into a Go type.

Two large templates usually differ in a string or a number. Go keeps strings and numbers unchanged, apart from
quantities and times; lists keep their length. Where such a difference decides, the value need not be read into a Go
type, which takes a hundred times as long. All other cases (absent and unknown fields, zeros, other notations) are left
to `roundtrip`.
"""

from typing import Final

from kuberuntime.objects import quantity
from kuberuntime.objects.gotypes.canonicaljson import MAX_EXACT_INTEGER
from kuberuntime.objects.gotypes.scalars import MICROSECONDS, SECONDS
from kuberuntime.objects.meta import JSON, JSONObject

AMOUNTS: Final = tuple("-0123456789")
"""The first characters of quantities and times, as Go writes them."""

ZEROES: Final = ("", "0")
"""Strings that Go writes for absent values."""


def surely_differs(value: JSON, written: JSON) -> bool:
    """Return True only if Go writes `value` differently from `written`, whatever its type; `written` was written by Go.

    >>> surely_differs({"image": "app:1"}, {"image": "app:2"})
    True
    >>> surely_differs({"unknown": 1, "limit": "1024Mi"}, {"limit": "1Gi"})
    False
    """
    if isinstance(written, dict):
        if value is None:
            value = {}
        return isinstance(value, dict) and _fields_differ(value, written)
    if isinstance(written, list):
        return _lists_differ(value, written)
    if isinstance(written, str):
        return _texts_differ(value, written)
    return _numbers_differ(value, written)


def _fields_differ(value: JSONObject, written: JSONObject) -> bool:
    pairs = ((value.get(name), part) for name, part in written.items())
    return any(one != other and surely_differs(one, other) for one, other in pairs)


def _lists_differ(value: JSON, written: list[JSON]) -> bool:
    if value is None:
        return bool(written)
    if not isinstance(value, list):
        return False
    pairs = zip(value, written, strict=False)
    return len(value) != len(written) or any(one != other and surely_differs(one, other) for one, other in pairs)


def _texts_differ(value: JSON, written: str) -> bool:
    if value is None:
        return written not in ZEROES
    if not isinstance(value, str) or value == written:
        return False
    if not written.startswith(AMOUNTS):
        return True
    if SECONDS.fullmatch(written) or MICROSECONDS.fullmatch(written):
        return False
    try:
        return quantity.canonical(value) != written
    except quantity.QuantityError:
        return True


def _numbers_differ(value: JSON, written: JSON) -> bool:
    """Compare booleans and integers; different integers that a float64 cannot hold may be written alike."""
    if isinstance(written, bool):
        return isinstance(value, bool) and value is not written
    if not isinstance(written, int) or isinstance(value, bool) or not isinstance(value, int):
        return False
    return value != written and max(abs(value), abs(written)) <= MAX_EXACT_INTEGER
