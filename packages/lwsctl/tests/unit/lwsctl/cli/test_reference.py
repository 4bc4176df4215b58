"""Tests that the command reference matches the help screens."""

from collections.abc import Callable
from pathlib import Path

import pytest
from docs import generate_causes, generate_cli, generate_matrix, manpages

PAGES: dict[str, Callable[[], dict[Path, str]]] = {
    "commands": lambda: {generate_cli.PAGE: generate_cli.page()} | manpages.pages(),
    "causes": lambda: {generate_causes.PAGE: generate_causes.page(), generate_causes.BROKEN: generate_causes.ways()},
    "what is tried together": lambda: {generate_matrix.PAGE: generate_matrix.page()},
}


@pytest.mark.parametrize("name", PAGES)
def test_command_reference_is_up_to_date(name: str) -> None:
    """The command reference equals the help screens from which `make generate` writes it."""
    assert [path.name for path, text in PAGES[name]().items() if path.read_text(encoding="utf-8") != text] == []
