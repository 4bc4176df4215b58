"""Tests that policies are handled with `match` and `assert_never`, so that mypy reports missing values."""

import ast
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest
from testkit import repository

import leaderworkerset
from leaderworkerset.api.groupname import GroupEnd
from leaderworkerset.api.recreationrecord import Origin, RecreationState
from leaderworkerset.capabilities.inplace.inplacesteps import InPlaceStep
from leaderworkerset.core.leaderworkerset.outline import Read
from leaderworkerset.core.leaderworkerset.rollingupdate import RolloutCase
from leaderworkerset.core.policies.levels import SchedulingLevel

SOURCE: Final = Path(leaderworkerset.__file__).parent
STATES: Final[tuple[type[Enum], ...]] = (
    RolloutCase,
    GroupEnd,
    InPlaceStep,
    Origin,
    Read,
    RecreationState,
    SchedulingLevel,
)
"""Enums that describe controller states or parts of decisions.

All other enums in `api`, `core` and `capabilities` are user settings.
"""


def policies() -> dict[str, set[str]]:
    """Return the values of each policy, by enum name."""
    modules = [
        import_module(".".join(("leaderworkerset", *path.relative_to(SOURCE).with_suffix("").parts)))
        for folder in ("api", "core", "capabilities")
        for path in (SOURCE / folder).rglob("*.py")
        if "Enum)" in path.read_text()
    ]
    defined = {
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Enum) and value.__module__ == module.__name__
    }
    assert set(STATES) <= defined
    return {enum.__name__: set(enum.__members__) for enum in defined - {*STATES}}


POLICIES: Final = policies()


def is_value(node: ast.AST) -> bool:
    """Return whether an expression is a value of a policy."""
    if not isinstance(node, ast.Attribute):
        return False
    enum = node.value.id if isinstance(node.value, ast.Name) else getattr(node.value, "attr", "")
    return node.attr in POLICIES.get(enum, ())


def open_decisions(tree: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Yield the decisions that would ignore a new value of a policy without an error."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=others) if any(map(is_value, (left, *others))):
                yield node
            case ast.Set(elts=values) | ast.List(elts=values) | ast.Tuple(elts=values) if any(map(is_value, values)):
                yield node
            case ast.Dict(keys=keys) if any(key is not None and is_value(key) for key in keys):
                yield node
            case ast.Match(cases=cases):
                named = [part for case in cases for part in ast.walk(case.pattern) if isinstance(part, ast.MatchValue)]
                is_closed = "assert_never" in ast.unparse(cases[-1])
                if any(is_value(part.value) for part in named) and not is_closed:
                    yield node


def test_policies_are_discovered() -> None:
    assert {
        "RestartPolicy",
        "StartupPolicy",
        "InPlace",
        "PodTerminationPolicy",
        "ScalingMode",
        "ObjectHealth",
    } <= POLICIES.keys()


@pytest.mark.parametrize(
    ("text", "is_open"),
    [
        ("x == RestartPolicy.NONE", True),
        ("x is not RestartPolicy.NONE", True),
        ("x in {api.RestartPolicy.NONE, RestartPolicy.DEFAULT}", True),
        ("[RestartPolicy.NONE]", True),
        ("{RestartPolicy.NONE: 1}", True),
        ("match x:\n case RestartPolicy.NONE: pass", True),
        ("match x:\n case RestartPolicy.NONE: pass\n case _: pass", True),
        ("match x:\n case RestartPolicy.NONE: pass\n case _: assert_never(x)", False),
        ("x.recreates and y == RestartPolicy.__name__", False),
        ("f(RestartPolicy.NONE)", False),
        ("match x:\n case 1: pass", False),
    ],
)
def test_open_decisions_are_recognized(text: str, *, is_open: bool) -> None:
    assert any(open_decisions(ast.parse(text))) == is_open


def test_decisions_about_policies_use_match_only() -> None:
    places = {
        f"{name}:{node.lineno}: {ast.unparse(node)[:80]}"
        for name, path in repository.modules("leaderworkerset", "lwsctl")
        for node in open_decisions(ast.parse(path.read_text()))
    }
    assert places == set(), "use a property of the enum that matches every value and ends with assert_never"
