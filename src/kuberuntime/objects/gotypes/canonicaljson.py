"""JSON in the bytes that Go writes: revisions are compared byte for byte with those of Go controllers."""

import json

from kuberuntime.objects import quantity
from kuberuntime.objects.meta import JSON

MAX_EXACT_INTEGER = 2**53

_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def canonical_json(value: JSON) -> bytes:
    r"""Encode as Go encodes a generic map: compact, sorted keys, HTML characters escaped (R-REV-6.7 and 6.8).

    >>> canonical_json({"b": "<&>", "a": [1, None]})
    b'{"a":[1,null],"b":"\\u003c\\u0026\\u003e"}'
    """
    text = json.dumps(_through_float64(value), ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return text.translate(_ESCAPES).encode()


def _through_float64(value: JSON) -> JSON:
    """Give integers that a float64 cannot hold the digits that Go prints for them."""
    if isinstance(value, dict):
        return {name: _through_float64(child) for name, child in value.items()}
    if isinstance(value, list):
        return [_through_float64(child) for child in value]
    if isinstance(value, int) and abs(value) > MAX_EXACT_INTEGER:
        return int(quantity.parse(repr(float(value))).fraction())
    return value
