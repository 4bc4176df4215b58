"""Tests that each package remains within its line budget, which decreases with the package."""

import subprocess
import tomllib
from typing import Any, Final

import pytest
from testkit.repository import ROOT

FILE: Final = ROOT / "budgets.toml"
SLACK: Final = 1.02
"""The maximum difference between a budget and the line count, so that budgets follow removed code."""


def budgets() -> dict[str, dict[str, Any]]:
    """Return the line budget of each package."""
    return tomllib.loads(FILE.read_text())


def lines(pattern: str) -> int:
    """Return the number of lines in the Python files in a path, according to git."""
    names = subprocess.run(["git", "ls-files", pattern], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return sum((ROOT / name).read_text().count("\n") for name in names.splitlines() if name.endswith(".py"))


def test_every_package_has_a_budget() -> None:
    packages = {path.name for path in (ROOT / "packages").iterdir() if (path / "pyproject.toml").exists()}
    assert budgets().keys() == packages | {"repository"}


@pytest.mark.parametrize(
    ("package", "part"),
    [(name, part) for name, budget in budgets().items() for part in sorted(budget.keys() - {"why"})],
)
def test_a_package_stays_within_its_budget(package: str, part: str) -> None:
    """A larger number needs an entry in `why` that describes the benefit."""
    folder = {"sources": "src", "tests": "tests"}[part]
    count = lines("tests" if package == "repository" else f"packages/{package}/{folder}")
    budget = budgets()[package][part]
    assert count <= budget, f"{package} has {count} lines of {part}: remove some, or raise {FILE.name} and say why"
    assert budget <= count * SLACK, f"{package} has {count} lines of {part}: lower its budget in {FILE.name}"
