"""Encodes JSON with escaped HTML characters like Go, so that clients compute the same hashes (R-REV-7)."""

from typing import Any, Final

import msgspec

ESCAPED: Final = (
    (b"<", b"\\u003c"),
    (b">", b"\\u003e"),
    (b"&", b"\\u0026"),
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
)
"""The escaped characters, which occur only inside strings."""


def encode(value: Any) -> bytes:
    r"""Encode a value.

    >>> encode({"a": "<&>"})
    b'{"a":"\\u003c\\u0026\\u003e"}'
    """
    encoded = msgspec.json.encode(value)
    for character, escape in ESCAPED:
        encoded = encoded.replace(character, escape)
    return encoded
