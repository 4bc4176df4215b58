"""Tests that each admission error has a row with its rule number, under which the contract describes it.

So no rule can be added or changed without a row and a number.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import pytest
from testkit.repository import ROOT, sources

FOLDER: Final = sources("leaderworkerset") / "leaderworkerset/core/admission"
MODULES: Final = sorted({path.stem for path in FOLDER.glob("*.py")} - {"__init__", "templatewarnings"})
"""The modules with errors. Warnings about templates do not reject an object."""

PAGES: Final = ("contract", "contract-disaggregatedset", "contract-kueue", "contract-newest")
BUILDERS: Final = {"invalid", "not_supported", "required", "FieldError"}
"""The functions that create an error. Their last argument is the message."""

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


def errors(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the function and the pattern of each error that a module builds."""
    constants = {name: value for _, name, value in assignments(iter(tree.body))}
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        local = sorted(assignments(ast.walk(function)), key=lambda row: row[0])
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            if ast.unparse(call.func).rpartition(".")[2] in BUILDERS and (call.args or call.keywords):
                text = call.keywords[-1].value if call.keywords else call.args[-1]
                earlier = {name: value for line, name, value in local if line <= call.lineno}
                yield function.name, pattern_of(text, constants | earlier)


def unlisted(text: str) -> list[str]:
    """Return the errors of a module that are not on a contract page."""
    return sorted({pattern for _, pattern in errors(ast.parse(text)) if not re.search(pattern, CONTRACT)})


def numbers_in(text: str) -> Iterator[str]:
    """Yield the rule numbers in a cell of a page or of a row, such as `R-VAL-7..9, Q-34`."""
    for part in re.split(r", (?=[A-Z]-|[a-z])", text.replace("†", "").strip("` ")):
        span = re.fullmatch(r"(.+-)(\d+)\.\.(\d+)", part)
        if span is None:
            yield part
        else:
            yield from (f"{span[1]}{number}" for number in range(int(span[2]), int(span[3]) + 1))


def paragraphs() -> Mapping[str, str]:
    """Return the description of each rule by its number. It is a table row or a paragraph that starts with it."""
    texts: dict[str, str] = {}
    for page in PAGES:
        known: list[str] = []
        for line in (ROOT / f"docs/reference/{page}.md").read_text().splitlines():
            start = re.match(r"\| ([^|]+?) \||(?:- )?\*\*([A-Z]+-[A-Z]+-\d+[a-z]?)", line)
            if start is not None:
                known = [*numbers_in(start[1] or start[2])]
            for number in known:
                texts[number] = f"{texts.get(number, '')} {line.strip()}"
            known = [] if line.startswith("|") else known
    return {number: re.sub(r" +", " ", text) for number, text in texts.items()}


TEXTS: Final = paragraphs()


class Module(NamedTuple):
    """The syntax tree of an admission module, and the functions of these modules by their local names."""

    name: str
    tree: ast.Module
    functions: Mapping[str, str]

    @classmethod
    def of(cls, name: str) -> "Module":
        """Read a module."""
        tree = ast.parse((FOLDER / f"{name}.py").read_text())
        known = {node.name: f"{name}.{node.name}" for node in tree.body if isinstance(node, ast.FunctionDef)}
        for node in (node for node in tree.body if isinstance(node, ast.ImportFrom)):
            source = (node.module or "").removeprefix("leaderworkerset.core.admission.")
            known |= {alias.name: f"{source}.{alias.name}" for alias in node.names if source in MODULES}
        return cls(name, tree, known)

    def called(self, node: ast.AST) -> Iterator[str]:
        """Yield the functions to which an expression or a function refers."""
        for part in ast.walk(node):
            match part:
                case ast.Name(id=name) if name in self.functions:
                    yield self.functions[name]
                case ast.Attribute(value=ast.Name(id=module), attr=name) if module in MODULES:
                    yield f"{module}.{name}"


SOURCES: Final = {name: Module.of(name) for name in MODULES}
CALLS: Final = {
    f"{module.name}.{node.name}": {*module.called(node)}
    for module in SOURCES.values()
    for node in module.tree.body
    if isinstance(node, ast.FunctionDef)
}


def rows() -> Iterator[tuple[Module, str, ast.expr]]:
    """Yield the module, the rule numbers and the function of each row."""
    for module in SOURCES.values():
        for node in ast.walk(module.tree):
            match node:
                case ast.Call(func=ast.Name(id="Rule"), args=[ast.Constant(value=str(numbers)), ast.expr() as find]):
                    yield module, numbers, find


def reached(module: Module, find: ast.expr) -> set[str]:
    """Return the functions that a row calls directly or indirectly."""
    known: set[str] = set()
    waiting = {*module.called(find)}
    while waiting:
        function = waiting.pop()
        known.add(function)
        waiting |= CALLS.get(function, set()) - known
    return known


ROWS: Final = [({*numbers_in(numbers)}, reached(module, find)) for module, numbers, find in rows()]

UNCHECKED: Final = {
    "R-VAL-26": "deletions",
    "R-VAL-27": "permitted values",
    "N-VAL-7": "the schema checks it",
    "N-VAL-8": "the length for N-VAL-5",
    "N-VAL-9": "a rule that upstream removed",
    "N-VAL-12": "a proposal",
    "N-SCH-VAL-21": "a consequence",
    "N-SCH-VAL-22": "the order of errors",
}
"""The paragraphs in the admission contract that are not rules with an error."""


def test_rows_have_the_numbers_of_the_contract() -> None:
    numbers = {number for own, _ in ROWS for number in own}
    checked = {number for number in TEXTS if re.fullmatch(r"(R-VAL|N-VAL|N-SCH-VAL)-\d+", number)}

    assert sorted(numbers - TEXTS.keys()) == [], "no page has these numbers"
    assert sorted(checked - UNCHECKED.keys() - numbers) == [], "no row has these numbers"


@pytest.mark.parametrize("module", MODULES)
def test_every_error_has_a_row_with_its_number(module: str) -> None:
    missing = []
    for function, pattern in errors(SOURCES[module].tree):
        numbers = {number for own, functions in ROWS if f"{module}.{function}" in functions for number in own}
        if not any(re.search(pattern, TEXTS[number]) for number in numbers):
            missing.append((function, pattern, sorted(numbers)))
    assert missing == [], "add a row to the table of rules, and the text to the page at its number"


def test_webhooks_reject_only_errors_of_rows() -> None:
    """The webhooks do not build errors themselves, and do not reject other requests."""
    tree = ast.parse((FOLDER.parents[1] / "webhooks/handlers.py").read_text())
    raised = {ast.unparse(node.exc) for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc is not None}

    assert [*errors(tree)] == []
    assert raised == {"DeniedError(aggregate(errors))"}


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
