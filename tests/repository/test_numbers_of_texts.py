"""Tests that one module converts strings to integers with a limit (`kuberuntime/objects/decimals.py`)."""

import ast
import re
from collections.abc import Iterator
from typing import Final

import pytest
from testkit import repository

JUSTIFIED: Final = {
    "kuberuntime/objects/decimals.py": "the place",
    "kuberuntime/objects/quantity.py": "texts of at most 100 characters",
    "kuberuntime/objects/gotypes/canonicaljson.py": "a fraction",
    "kuberuntime/objects/gotypes/scalars.py": "two digits of a time",
    "kuberuntime/manifests/yamltext.py": "other bases; texts of a length that is checked before",
    "kuberuntime/serving/limitlistener.py": "a port of the operating system",
    "leaderworkerset/api/leaderworkerset.py": "an index of a list that msgspec names",
    "lwsctl/cli/commands/install.py": "counts of a status, by names listed there",
    "lwsctl/cli/cluster/clusterdirectories.py": "a process ID, read up to a length",
    "lwsctl/cli/local/clusteroptions.py": "a number that click has read",
    "lwsctl/cli/commands/local/up.py": "a descriptor that this program passed on",
    "leaderworkerset/rendezvous/__main__.py": "nine digits at most; it imports nothing of ours",
    "leaderworkerset/controllers/metrics.py": "spec.replicas, an integer by its schema",
}
"""Modules that call `int` with a value other than a field or a result, and this value."""


def unbounded(module: ast.Module) -> Iterator[str]:
    """Yield calls to `int` whose argument may be a stored string."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "int" and node.args:
            argument = node.args[0]
            if isinstance(argument, ast.BoolOp):
                *fields, last = argument.values
                if not isinstance(last, ast.Constant) or not all(map(is_number, fields)):
                    yield ast.unparse(node)
            elif not is_number(argument):
                yield ast.unparse(node)


def is_number(argument: ast.expr) -> bool:
    """Return whether the argument is a result or a field. Labels and annotations have different names."""
    if isinstance(argument, ast.BinOp):
        return True
    match argument:
        case ast.Call(func=ast.Attribute(attr="total_seconds")):
            return True
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(), *_]):
            return True
    return False


@pytest.mark.slow
def test_no_text_becomes_an_integer_without_a_bound() -> None:
    found = {}
    for name, path in repository.modules("kuberuntime", "leaderworkerset", "lwsctl"):
        text = path.read_text()
        if re.search(r"\bint\(", text) and (calls := list(unbounded(ast.parse(text)))):
            found[name] = calls
    assert {module: calls for module, calls in found.items() if module not in JUSTIFIED} == {}
    assert JUSTIFIED.keys() - found.keys() == set()


def test_unbounded_conversion_is_detected() -> None:
    assert list(unbounded(ast.parse("int(own[labels.GROUP_INDEX]); int(text); int(a.get(labels.SIZE) or 0)"))) == [
        "int(own[labels.GROUP_INDEX])",
        "int(text)",
        "int(a.get(labels.SIZE) or 0)",
    ]
