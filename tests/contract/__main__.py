"""Prints the tests that prove each rule of the contracts, and where these tests run.

Run it with `python -m tests.contract [--run]`.

Without `--run` tests are only collected; with it, tests that cite a rule are run, and only passed tests prove a rule.
Ends with 1 where a required rule has no proof. `-v` prints the tests' names.
"""

import re
import sys
from collections import Counter

import pytest
from testkit.repository import ROOT
from tests.contract.rules import (
    ELSEWHERE,
    NO_BEHAVIOUR,
    OTHERS,
    Place,
    Proof,
    cited,
    prove,
    required,
    uncovered,
)

CONTRACTS = ROOT / "docs" / "reference"


class Witness:
    """Records collected and passed tests, and deselects tests that do not cite a rule."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.passed: set[str] = set()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Select the tests that cite a rule."""
        for item in items:
            assert isinstance(item, pytest.Function)
            self.texts[item.nodeid] = text_of(item)
        items[:] = [item for item in items if cited(self.texts[item.nodeid])]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record passed tests."""
        if report.when == "call" and report.passed:
            self.passed.add(report.nodeid)


def main(arguments: list[str]) -> int:
    """Run the command-line interface."""
    is_run = "--run" in arguments
    witness = Witness()
    options = ["-q", "-p", "no:cacheprovider", "--no-header"]
    pytest.main(options if is_run else ["--collect-only", "-qqq", *options], plugins=[witness])
    tests = [(test, text) for test, text in witness.texts.items() if not is_run or test in witness.passed]
    proofs = prove(tests)
    rules = required(CONTRACTS)
    for rule in rules:
        print_rule(rule, proofs.get(rule, []), show_tests="-v" in arguments)
    open_rules = list(uncovered(rules, proofs))
    chapters = {chapter(rule) for rule in rules}
    unknown = sorted(rule for rule in proofs if rule not in rules and chapter(rule) in chapters)
    proved = sum(rule in proofs for rule in rules)
    say(f"{len(rules)} rules, {proved} cited by tests, {len(open_rules)} open: {' '.join(open_rules) or 'none'}")
    if unknown:
        say(f"cited, but not in the contracts: {' '.join(unknown)}")
    return 1 if open_rules or unknown else 0


def text_of(item: pytest.Function) -> str:
    """Return the test docstring, or the module docstring if the test does not cite a rule."""
    own = item.obj.__doc__ or ""
    return own if cited(own) else item.module.__doc__ or ""


def print_rule(rule: str, proofs: list[Proof], *, show_tests: bool) -> None:
    """Print a line for each rule."""
    counts = Counter(proof.place for proof in proofs)
    places = "  ".join(f"{place} {counts[place]:>3}" for place in Place)
    reason = (NO_BEHAVIOUR | OTHERS).get(rule) or next(
        (ELSEWHERE[key] for key in ELSEWHERE if rule.startswith(key)), ""
    )
    say(f"{rule:<12}{places}  {'' if proofs else reason or 'OPEN'}".rstrip())
    if show_tests:
        for name in sorted({re.sub(r"\[.*", "", proof.test) for proof in proofs}):
            say(f"    {name}")


def chapter(rule: str) -> str:
    """Return the chapter that contains a rule."""
    return rule.rpartition("-")[0]


def say(text: str) -> None:
    """Print one line."""
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
