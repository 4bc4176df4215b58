"""Tests that each admission error is on a contract page, so that each rule has a number."""

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Final

import pytest
from testkit.repository import ROOT, sources

FOLDER: Final = sources("leaderworkerset") / "leaderworkerset/core/admission"
MODULES: Final = sorted({path.stem for path in FOLDER.glob("*.py")} - {"__init__", "templatewarnings"})
"""The modules with errors. Warnings about templates do not reject an object."""

PAGES: Final = ("contract", "contract-disaggregatedset", "contract-kueue", "contract-newest")
BUILDERS: Final = {"invalid", "not_supported", "required", "FieldError"}
"""The functions that create an error. The message is their last argument."""

CONTRACT: Final = " ".join(" ".join((ROOT / f"docs/reference/{page}.md").read_text().split()) for page in PAGES)


def pattern_of(node: ast.expr, texts: Mapping[str, ast.expr]) -> str:
    """Return a pattern for a message on the page, or an empty pattern if another module creates the message."""
    match node:
        case ast.Constant(value=str(text)):
            return re.escape(re.sub(r" +", " ", text))
        case ast.JoinedStr(values=parts):
            return "".join(pattern_of(part, texts) or ".{1,60}?" for part in parts)
        case ast.Name(id=name) if name in texts:
            return pattern_of(texts[name], {})
        case _:
            return ""


def assignments(nodes: Iterator[ast.AST]) -> Iterator[tuple[int, str, ast.expr]]:
    """Yield the line, the name and the value of each assignment."""
    for node in nodes:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=ast.expr() as value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                yield node.lineno, name, value


def errors(tree: ast.Module) -> Iterator[str]:
    """Yield the pattern of each error in a module."""
    constants = {name: value for _, name, value in assignments(iter(tree.body))}
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        local = sorted(assignments(ast.walk(function)), key=lambda row: row[0])
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            if ast.unparse(call.func).rpartition(".")[2] in BUILDERS and (call.args or call.keywords):
                text = call.keywords[-1].value if call.keywords else call.args[-1]
                earlier = {name: value for line, name, value in local if line <= call.lineno}
                yield pattern_of(text, constants | earlier)


def unlisted(text: str) -> list[str]:
    """Return the errors of a module that are not on a contract page."""
    return sorted({pattern for pattern in errors(ast.parse(text)) if not re.search(pattern, CONTRACT)})


@pytest.mark.parametrize("module", MODULES)
def test_every_error_of_admission_is_in_the_contract(module: str) -> None:
    text = (FOLDER / f"{module}.py").read_text()
    assert unlisted(text) == [], "add the path, the condition and the text to a page of the contract"


@pytest.mark.parametrize(
    ("text", "is_listed"),
    [
        ("invalid(path, size, 'size must be equal or greater than 1')", True),
        ("invalid(path, size, f'replicas must be equal or less than {MOST}')", True),
        ("invalid(path, size, 'size must be equal or greater than 2')", False),
        ("text = 'size must be even'\n    yield field.invalid(path, size, text)", False),
        ("FieldError(Kind.FORBIDDEN, path, detail='field is frozen')", False),
    ],
)
def test_unlisted_error_is_detected(text: str, *, is_listed: bool) -> None:
    assert (unlisted(f"def rule():\n    {text}") == []) is is_listed
