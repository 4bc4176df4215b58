"""Tests that the unit tests of the core detect broken rules. They run on a modified copy of the code."""

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from testkit.examples import IS_THOROUGH
from testkit.repository import ROOT
from tests.contract.broken import RULES, Broken

PRODUCT = ROOT / "packages" / "leaderworkerset"
CORE = Path("leaderworkerset") / "core"
UNIT = PRODUCT / "tests" / "unit" / "leaderworkerset" / "core"
WHOLE = [
    replace(rule, rule=f"none of {rule.module}", after=rule.before)
    for rule in {Path(one.module).parent: one for one in RULES}.values()
]
"""An unmodified module in each directory. Its tests must pass, so that a failure proves a broken rule."""


def plant(rule: Broken, source: Path) -> None:
    """Break a rule in a copy of the code."""
    module = source / CORE / rule.module
    text = module.read_text()
    assert text.count(rule.before) == 1, f"{rule.rule}: {rule.module} does not have {rule.before!r} once"
    module.write_text(text.replace(rule.before, rule.after))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.rule)
def test_planted_rule_is_found_in_its_module(rule: Broken) -> None:
    assert (PRODUCT / "src" / CORE / rule.module).read_text().count(rule.before) == 1


@pytest.mark.slow
@pytest.mark.skipif(not IS_THOROUGH, reason="make nightly runs the unit tests of ten broken products (THOROUGH=1)")
@pytest.mark.parametrize("rule", [*WHOLE, *RULES], ids=lambda rule: rule.rule)
def test_unit_tests_detect_a_broken_rule(tmp_path: Path, rule: Broken) -> None:
    shutil.copytree(PRODUCT / "src", tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    plant(rule, tmp_path)
    # The tests of pods also cover the policies, because pods are reconciled by these policies.
    tests = sorted({UNIT / Path(rule.module).parent, UNIT / "pod"})

    sources = f"pythonpath={tmp_path} packages/leaderworkerset"
    # `test_walk.py` counts calls by source path.
    options = ["-x", "-q", "-p", "no:cacheprovider", "-o", sources, "--ignore-glob=*/test_walk.py"]
    words = [sys.executable, "-m", "pytest", *options, *map(str, tests)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)

    expected = pytest.ExitCode.OK if rule in WHOLE else pytest.ExitCode.TESTS_FAILED
    assert done.returncode == expected, done.stdout
