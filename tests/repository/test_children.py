"""Tests that child processes do not import modules from the user's working directory."""

import ast
from collections.abc import Iterator
from pathlib import Path

import kuberuntime
import leaderworkerset
import localkube
import lwsctl

SOURCES = [Path(package.__path__[0]) for package in (kuberuntime, localkube, leaderworkerset, lwsctl)]
ISOLATED = {"-P", "-I"}


def commands(tree: ast.AST) -> Iterator[list[ast.expr]]:
    """Yield the arguments after `sys.executable` in a list, tuple or call."""
    for node in ast.walk(tree):
        for words in (getattr(node, "elts", None), getattr(node, "args", None)):
            if isinstance(words, list):
                yield from (words[at + 1 :] for at, word in enumerate(words) if ast.unparse(word) == "sys.executable")


def test_every_python_child_ignores_the_working_directory() -> None:
    found = []
    for path in sorted(path for source in SOURCES for path in source.rglob("*.py")):
        text = path.read_text()
        children = list(commands(ast.parse(text))) if "sys.executable" in text else []
        assert len(children) == text.count("sys.executable"), f"{path}: name the words after sys.executable in place"
        found += [
            (path.name, bool(rest) and isinstance(rest[0], ast.Constant) and rest[0].value in ISOLATED)
            for rest in children
        ]
    assert len(found) >= 5
    assert [name for name, is_isolated in found if not is_isolated] == []
