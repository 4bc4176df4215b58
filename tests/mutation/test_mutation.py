"""A mutant meets the tests that there are: a trial without tests is an error, not a mutant that was noticed."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.mutation import __main__ as mutation
from tests.mutation import broken

MODULE = mutation.CORE / "policies" / "numbers.py"
TRIAL = "import sys; from tests.mutation import trial; print(trial.survived(trial.start(*sys.argv[1:3], sys.argv[3:])))"


def test_every_mutant_has_tests_to_meet() -> None:
    found = {mutation.own_tests(module) for module in mutation.CORE.rglob("*.py")}
    assert len(found) > 40
    assert {path for path in found if not (path.is_file() or any(path.rglob("test_*.py")))} == set()
    assert all(path.is_dir() for path in mutation.ALL)


def test_every_rule_that_is_broken_on_purpose_is_in_its_module() -> None:
    assert len(mutation.broken_rules()) == len(broken.RULES)


@pytest.mark.slow
@pytest.mark.parametrize(("line", "lives"), [("", True), ("\nraise ValueError('broken')\n", False)])
def test_a_module_that_is_broken_is_noticed_and_one_that_is_not_lives(line: str, lives: bool) -> None:
    tests = mutation.UNIT / "core" / "policies" / "test_numbers.py"
    assert tried(MODULE.read_text() + line, tests).stdout.strip() == str(lives)


@pytest.mark.slow
def test_a_trial_that_finds_no_tests_is_an_error(tmp_path: Path) -> None:
    assert "TrialError: there are no tests at " in tried(MODULE.read_text(), tmp_path / "gone").stderr


def tried(source: str, tests: Path) -> "subprocess.CompletedProcess[str]":
    """Try one source in a process of its own."""
    words = [sys.executable, "-c", TRIAL, "leaderworkerset.core.policies.numbers", source, str(tests)]
    return subprocess.run(words, cwd=mutation.ROOT, capture_output=True, text=True, check=False)
