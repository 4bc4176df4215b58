"""The lines of a log as the dashboard sends them."""

import asyncio

import msgspec
import pytest

from lwsctl.dashboard.logstream import LineQueue


@pytest.mark.parametrize(
    ("text", "is_error"), [("KeyError: 'rank'", True), ("joining web-0.web.default, 3 out of 8", False)]
)
def test_line_is_marked_when_it_names_an_error(text: str, *, is_error: bool) -> None:
    lines = LineQueue()
    lines.line({}, f"2026-01-01T00:00:00Z {text}".encode())
    sent = msgspec.json.decode(asyncio.run(lines.take(1)))
    assert (sent["text"], sent.get("error", False)) == (text, is_error)
