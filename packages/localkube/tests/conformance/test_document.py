"""Tests the documentation page that lists the differences."""

from tests.conformance import document


def test_page_lists_every_difference() -> None:
    assert document.PAGE.read_text() == document.build(), "run python -m tests.conformance.document"
