"""Tests by searching the sources that each displayed string from tenants and containers is masked."""

import ast
from collections.abc import Iterator
from typing import Final

from testkit.repository import sources

from lwsctl.cli.views import terminal
from lwsctl.dashboard.markup import tag

SOURCES: Final = (sources("lwsctl") / "lwsctl", sources("leaderworkerset") / "leaderworkerset/recording")
"""The packages that display or record cluster objects."""

FIELDS: Final = frozenset({"message", "note"})
"""Fields with strings from containers, kubelets and tenants."""

PASSES: Final = frozenset({"mask_message", "quote_message", "clean", "text", "last_lines"})
"""The functions that clean a string, such as `mask.text`."""

PARTS: Final = frozenset({"match", "words"})
"""Names of values that contain parts of a string, and whose uses are checked."""

OTHERS: Final = {
    "cli/doctor/installationchecks.py": "a condition of the product's own definition, written by the API server",
    "diagnosis/exits.py": "compared with a word, not shown",
    "diagnosis/logerrors.py": "its length, not shown",
    "rollout/ownfields.py": "the API server's answer to the user's own request",
    "views/podcontainers.py": "compared with the reason, not shown",
}
"""Modules that read such a field, with the reason why it is not displayed or is already clean."""


def readings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the lines and the fields that are read outside a cleaning function."""
    cleaned = {
        id(inner)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and name_of(call.func) in PASSES
        for argument in call.args
        for inner in ast.walk(argument)
    }
    for node in ast.walk(tree):
        key = None
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            key = None if name_of(node.value) in PARTS else node.slice
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "get"
            and node.args
        ):
            key = node.args[0]
        if isinstance(key, ast.Constant) and key.value in FIELDS and id(node) not in cleaned:
            yield getattr(node, "lineno", 0), str(key.value)


def name_of(function: ast.expr) -> str:
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def test_every_reading_of_a_foreign_text_is_cleaned() -> None:
    places = {
        f"{path.relative_to(folder)}:{line}: {field}"
        for folder in SOURCES
        for path in folder.rglob("*.py")
        for line, field in readings(ast.parse(path.read_text(encoding="utf-8")))
        if str(path.relative_to(folder)) not in OTHERS
    }
    assert not places, "pass the text through kuberuntime.texts.masking.mask_message"


def test_reading_without_cleaning_is_found() -> None:
    assert list(readings(ast.parse('show(state.get("message") or "")'))) == [(1, "message")]
    assert list(readings(ast.parse('show(mask_message(state["message"]))'))) == []


def test_marks_of_direction_are_visible() -> None:
    text = "ready \u202eyadnuS\u2066\x1b[31m\x07"
    assert terminal.escape(text) == "ready \\u202eyadnuS\\u2066^[[31m\\x07"
    assert tag("p", text, title=text) == (
        '<p title="ready \\u202eyadnuS\\u2066\\x1b[31m\\x07">ready \\u202eyadnuS\\u2066\\x1b[31m\\x07</p>'
    )
    assert tag("pre", "a\tb\nc") == "<pre>a\tb\nc</pre>"
