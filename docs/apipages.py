"""Builds pages about the public Python interfaces of the packages from their docstrings.

The sources are read, not imported. The pages are generated with the site, and are not stored.
"""
# ruff: noqa: INP001 - part of the scripts beside it

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

PACKAGES: Final = Path(__file__).parents[1] / "packages"

Definition: TypeAlias = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
PROPERTIES: Final = frozenset({"property", "cached_property"})
LEFT_OUT: Final = frozenset({"overload", "setter"})


class Api(NamedTuple):
    """A page, with its title, its introduction, and the modules that it describes."""

    title: str
    introduction: str
    modules: Sequence[str]


APIS: Final = {
    "docs/reference/api-client.md": Api(
        "The Python client: lwsctl.client",
        "Import all names from `lwsctl.client`. To learn how to use the client, see [Use it from Python](../how-to/python-client.md).",
        ["lwsctl.client"],
    ),
    "docs/reference/api-localkube.md": Api(
        "A cluster in a program: localkube",
        "Start a local cluster from a program or a test. For an introduction, see [localkube](../../packages/localkube/README.md).",
        ["localkube.cluster", "localkube.clustersettings", "localkube.testing", "localkube.fixtures"],
    ),
    "docs/reference/api-kuberuntime.md": Api(
        "Parts of controllers: kuberuntime",
        "These modules are the building blocks of controllers. For an introduction, see [kuberuntime](../../packages/kuberuntime/README.md).",
        [
            "kuberuntime.access.kubeconfig",
            "kuberuntime.client.client",
            "kuberuntime.client.http",
            "kuberuntime.client.requests",
            "kuberuntime.errors",
            "kuberuntime.cache.informer",
            "kuberuntime.plan",
            "kuberuntime.controller.controller",
            "kuberuntime.controller.executor",
            "kuberuntime.controller.eventrecorder",
            "kuberuntime.controller.manager",
            "kuberuntime.serving.leaderelection",
            "kuberuntime.clock",
        ],
    ),
}


def pages() -> dict[str, str]:
    """Return the pages by their paths in the site."""
    return {name: page(api) for name, api in APIS.items()}


def page(api: Api) -> str:
    """Return a page about modules, with the public classes and functions of each module in order."""
    lines = [f"# {api.title}", "", api.introduction, ""]
    for module in api.modules:
        tree = parsed(module)
        lines += [f"## {module}", "", *text(tree)]
        for definition in public(module, tree):
            lines += described(definition)
    return "\n".join(lines).rstrip() + "\n"


def parsed(module: str) -> ast.Module:
    """Return the source of a module or of a package's `__init__`."""
    package, *_ = parts = module.split(".")
    path = PACKAGES.joinpath(package, "src", *parts)
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


def public(module: str, tree: ast.Module) -> Iterator[Definition]:
    """Yield the public classes and functions of a module. For names in its `__all__`, use the defining modules."""
    own = {node.name: node for node in tree.body if isinstance(node, Definition)}
    exports = [
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    if not exports:
        yield from (definition for name, definition in own.items() if not name.startswith("_"))
        return
    sources = {
        name.asname or name.name: node.module
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module
        for name in node.names
    }
    for name in ast.literal_eval(exports[0]):
        if name in own:
            yield own[name]
        elif (source := sources.get(name)) and source != module:
            yield from (definition for definition in public(source, parsed(source)) if definition.name == name)


def described(definition: Definition) -> list[str]:
    """Return the section about a class with its fields and methods, or about a function."""
    lines = [f"### {definition.name}", "", *code(signature(definition)), *text(definition)]
    if not isinstance(definition, ast.ClassDef):
        return lines
    lines += fields(definition)
    for member in definition.body:
        if not isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef) or member.name.startswith("_"):
            continue
        if not decorators(member) & LEFT_OUT:
            lines += [f"#### {definition.name}.{member.name}", "", *code(signature(member)), *text(member)]
    return lines


def decorators(definition: Definition) -> set[str]:
    """Return the decorator names of a class or function."""
    return {ast.unparse(decorator).partition("(")[0].rpartition(".")[2] for decorator in definition.decorator_list}


def signature(definition: Definition) -> str:
    """Return the original signature of a class or function. Omit the receiver of methods."""
    if isinstance(definition, ast.ClassDef):
        start = next(
            (member for member in definition.body if isinstance(member, ast.FunctionDef) and member.name == "__init__"),
            None,
        )
        bases = ", ".join(map(ast.unparse, definition.bases))
        arguments = _arguments(start) if start else ""
        within = bases or arguments
        return f"class {definition.name}({within})" if within else f"class {definition.name}"
    names = decorators(definition)
    returned = f" -> {ast.unparse(definition.returns)}" if definition.returns else ""
    if names & PROPERTIES:
        return f"{definition.name}: {ast.unparse(definition.returns)}" if definition.returns else definition.name
    if names & {"asynccontextmanager", "contextmanager"}:
        kind = "async with " if "asynccontextmanager" in names else "with "
        returned = re.sub(r"^ -> \w*Iterator\[(.*)\]$", r" as \1", returned)
    else:
        kind = "async def " if isinstance(definition, ast.AsyncFunctionDef) else "def "
    return f"{kind}{definition.name}({_arguments(definition)}){returned}"


def _arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    words = ast.unparse(function.args)
    return re.sub(r"^(?:self|cls)(?:, /)?(?:, |$)", "", words)


def fields(definition: ast.ClassDef) -> list[str]:
    """Return the fields of a class or the values of an enum, with their descriptions."""
    lines = []
    for statement, after in zip(definition.body, [*definition.body[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign | ast.Assign) and not ast.unparse(statement).startswith("_"):
            description = (
                after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
            )
            lines.append(
                f"- `{ast.unparse(statement)}`" + (f": {' '.join(str(description).split())}" if description else "")
            )
    return [*lines, ""] if lines else []


def text(node: Definition | ast.Module) -> list[str]:
    """Return a docstring in which examples are code blocks."""
    lines, in_example = [], False
    for line in (ast.get_docstring(node) or "").splitlines():
        begins = line.startswith(">>>") and not in_example
        ends = in_example and not line.strip()
        lines += [*(["```pycon"] if begins else []), *(["```"] if ends else []), line]
        in_example = (in_example or begins) and not ends
    return [*lines, *(["```"] if in_example else []), ""] if lines else []


def code(words: str) -> list[str]:
    """Return a Python code block."""
    return ["```python", words, "```", ""]
