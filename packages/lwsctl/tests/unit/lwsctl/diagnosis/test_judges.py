"""Tests that only one module determines the status.

Others may compare it only to display it or to choose a message.
"""

import ast
from collections import Counter
from collections.abc import Iterator

from testkit.repository import ROOT

from lwsctl.model.health import Verdict

SOURCES = ROOT / "packages/lwsctl/src/lwsctl"
ASKING = ("model", "views", "diagnosis", "observation", "client", "cli", "dashboard")

JUDGE = "model/health.py"
CAUSES = "diagnosis/causes/"
"""Causes declare whether they need user action."""

COMPARES = {"diagnosis/diagnose.py": 2, "diagnosis/current.py": 1, "dashboard/setorder.py": 1}
"""The number of comparisons that select a message or count complete workloads, which may only decrease."""

SPELLS = {
    "model/disaggregatedset.py": {"progressing"},  # the rollout of a DisaggregatedSet
    "model/groups.py": {"starting"},  # the cell of a rank
    "dashboard/pages/rolloutpage.py": {"starting"},  # a step of a rollout
    "dashboard/address.py": {"healthy", "progressing"},  # the filters of the first page
    "dashboard/pages/revisionchart.py": {"starting"},  # a step of a rollout
    "cli/doctor/findings.py": {"healthy"},  # a field of the document that `lws doctor` prints
}
"""Other uses of the same words."""


def trees() -> Iterator[tuple[str, ast.Module]]:
    """Yield the modules that query a cluster, except the causes."""
    for path in (path for folder in ASKING for path in (SOURCES / folder).rglob("*.py")):
        name = str(path.relative_to(SOURCES))
        if name != JUDGE and not name.startswith(CAUSES):
            yield name, ast.parse(path.read_text())


def is_verdict(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Verdict"


def test_verdicts_are_compared_in_few_places() -> None:
    compares = Counter(
        name
        for name, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare) and any(map(is_verdict, (node.left, *node.comparators)))
    )
    assert dict(compares) == COMPARES, "ask lwsctl.model.health, or lower the number"


def test_verdicts_are_spelled_by_one_module() -> None:
    words = {verdict.value for verdict in Verdict} - {"unknown", "complete"}
    spelled: dict[str, set[str]] = {}
    for name, tree in trees():
        constants = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
        if found := {word for word in words if word in constants}:
            spelled[name] = found
    assert spelled == SPELLS
