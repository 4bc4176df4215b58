"""Tests that the page about the tests lists exactly the scenarios that run on real nodes."""

import ast
import re

from testkit.repository import ROOT
from tests.node.kubeletscenarios import LIVES

PAGE = (ROOT / "docs" / "explanation" / "what-the-tests-prove.md").read_text()


def section(heading: str) -> str:
    """Return the content after a heading."""
    return PAGE.partition(f"\n## {heading}")[2].partition("\n## ")[0]


def scenarios() -> list[str]:
    """Return the names of all tests in `tests/node` without the prefix."""
    trees = [ast.parse(file.read_text()) for file in sorted((ROOT / "tests" / "node").rglob("test_*.py"))]
    names = [one.name for tree in trees for one in tree.body if isinstance(one, ast.FunctionDef)]
    return [name.removeprefix("test_") for name in names if name.startswith("test_")]


def test_each_scenario_proves_a_claim_of_the_page() -> None:
    rows = [line for line in section("What needs a kubelet").splitlines() if line.startswith("| ")][1:]
    proofs = [re.findall(r"`(\w+)`", row.split(" | ")[-1]) for row in rows]
    assert all(proofs), "a claim has no test"
    assert sorted(name for names in proofs for name in names) == sorted(scenarios())


def test_each_difference_of_kubelets_is_on_the_page() -> None:
    text = section("How the embedded kubelet differs")
    reasons = {reason for life in LIVES.values() for reason in life.known.values()}
    assert [reason for reason in sorted(reasons) if f"| {reason} |" not in text] == []
    assert f"The same {len(LIVES)} pods" in text
    assert len(text.strip().splitlines()) - 5 <= 10
