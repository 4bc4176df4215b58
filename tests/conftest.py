"""What holds for all tests: how they begin, and their counts by part and cluster above pytest's own last line."""

import re
import signal
from collections import Counter
from typing import Final

import pytest

PARTS: Final = re.compile(r"tests/(?P<part>\w+)/[^\[]*(\[(?P<parameters>.*)\])?")
CLUSTERS: Final = {"embedded": "on the embedded cluster", "kubernetes": "on Kubernetes"}
OUTCOMES: Final = ("passed", "failed", "error", "skipped")


def pytest_configure() -> None:
    """Heed Ctrl-C also where these tests run in the background: shells let such programs ignore it, and their children
    would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell how many tests of each part passed, failed or were skipped."""
    counts: dict[str, Counter[str]] = {}
    for outcome in OUTCOMES:
        for report in terminalreporter.stats.get(outcome, []):
            counts.setdefault(part_of(report.nodeid), Counter())[outcome] += 1
    if len(counts) > 1:
        terminalreporter.section("tests by part")
        for part, found in sorted(counts.items()):
            told = ", ".join(f"{number} {outcome}" for outcome, number in found.items())
            terminalreporter.line(f"{part}: {told}")


def part_of(node: str) -> str:
    """Name the part of the suite, and the cluster where a test has one as parameter.

    >>> part_of("tests/integration/lws/test_claims.py::test_each[kubernetes-leader]")
    'integration on Kubernetes'
    >>> part_of("tests/unit/api/test_names.py::test_it")
    'unit'
    """
    found = PARTS.match(node)
    if found is None:
        return node
    parameters = (found["parameters"] or "").split("-")
    return " ".join([found["part"], *(CLUSTERS[one] for one in parameters if one in CLUSTERS)])
