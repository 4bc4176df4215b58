"""Tests that the documentation has screenshots of each page, and that they can be retaken."""

import asyncio
import re
from pathlib import Path

import pytest
from tests.browser import pictures

pytestmark = pytest.mark.slow


def test_every_page_has_a_picture(tmp_path: Path) -> None:
    asyncio.run(pictures.take(tmp_path))
    taken = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert sorted(taken) == sorted(pictures.names())
    assert min(taken.values()) > 1000, "no picture is empty"


def test_documentation_has_every_picture_and_they_are_small() -> None:
    kept = {path.name: path.stat().st_size for path in pictures.FOLDER.glob("*.webp")}
    assert sorted(kept) == sorted(pictures.names())
    assert sum(kept.values()) <= pictures.MOST_BYTES
    shown = set(re.findall(r"\(dashboard/([\w-]+\.webp)\)", Path("docs/how-to/dashboard.md").read_text()))
    assert shown == set(kept)
