"""Tests that the façade `leaderworkerset.decisions` contains exactly the names that commands use."""

import ast
import re
from collections.abc import Iterator

from testkit.repository import modules, sources

FOLDER = sources("leaderworkerset") / "leaderworkerset" / "decisions"

MOST = 150
"""The maximum number of names in the façade, which may only decrease."""


def offered() -> Iterator[tuple[str, str]]:
    for path in sorted(FOLDER.glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ImportFrom):
                yield from ((path.stem, alias.asname or alias.name) for alias in node.names)


def test_every_name_of_the_facade_is_used() -> None:
    users = [path.read_text() for _, path in modules() if FOLDER not in path.parents]
    importing = "\n".join(text for text in users if "leaderworkerset.decisions" in text)
    assert [name for name in offered() if not re.search(rf"\b{name[1]}\b", importing)] == []


def test_facade_does_not_grow() -> None:
    assert len(list(offered())) <= MOST
