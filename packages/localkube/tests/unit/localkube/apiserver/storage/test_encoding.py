"""Tests that JSON is written in the same format as in Go."""

import msgspec
import pytest

from localkube.apiserver.storage.encoding import encode


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<a> & b", b'"\\u003ca\\u003e \\u0026 b"'),
        ("\u2028\u2029", b'"\\u2028\\u2029"'),
        ("é\n\\", '"é\\n\\\\"'.encode()),
    ],
)
def test_html_characters_are_escaped(text: str, expected: bytes) -> None:
    """The bytes of revision data are preserved (R-REV-7)."""
    assert encode(text) == expected
    assert msgspec.json.decode(encode({text: [text]})) == {text: [text]}
