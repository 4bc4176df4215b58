"""What holds for all tests: how they begin, and their counts by part and cluster above pytest's own last line."""

import gc
import os
import re
import signal
from collections import Counter
from pathlib import Path
from typing import Final

import pytest
from tests import examples, results
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

PARTS: Final = re.compile(r"tests/(?P<part>\w+)/[^\[]*(\[(?P<parameters>.*)\])?")
CLUSTERS: Final = {
    "embedded": "on the embedded cluster",
    "kubernetes": "on Kubernetes",
    "other_version": "on the other Kubernetes",
}
OUTCOMES: Final = ("passed", "failed", "error", "skipped")
SHARED: Final = (
    "conformance/controllers",
    "conformance",
    "integration/gang",
    "integration/install",
    "integration/lws",
    "integration/manager",
    "integration/lwsoperator",
    "integration/shipped",
    "kubectl",
    "parity",
)
"""Folders whose tests share a cluster, which is started once."""

AT_ONCE: Final = 5
"""Tests of `make test` that run at once."""

COLLECT_AFTER: Final = 10_000
"""Objects made after which the garbage collector runs."""

PAGES: Final = ("e2e/test_documents.py", "e2e/test_examples.py")
"""Tests that may not meet: some of what they run uses port 8080."""


def pytest_configure() -> None:
    """Let Ctrl-C end them also where these tests run in the background: shells let such programs ignore it, and their children
    would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    examples.load_profile()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `make test` say that it tries again what failed (it gives `--last-failed` with it), and `make nightly` keep counts."""
    parser.addoption("--second-try", action="store_true", help="list the tests that pass: they failed before")
    parser.addoption("--record", type=Path, metavar="FILE", help="keep the counts of this run there (tests/results.py)")


def pytest_collection_finish() -> None:
    """Keep the thousands of tests that were found out of the garbage collector's sight: they live to the end.

    Tests make many objects and keep few: with Python's 700 objects a tenth of the time goes into looking for garbage.
    """
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)


class ByGroup(LoadScopeScheduling):  # type: ignore[misc]  # pytest-xdist has no types
    """Runs the tests of a group in one process, one after the other.

    The marker `xdist_group` would say the same, but pytest-xdist 3.8 ignores it with pytest 9.2.
    """

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)

    def _pending_of(self, workload: dict[str, dict[str, bool]]) -> int:
        """Forget the groups that are done before what is left is counted, which happens after each test."""
        for done in [scope for scope, tests in workload.items() if all(tests.values())]:
            del workload[done]
        return int(super()._pending_of(workload))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """Let those tests that share a cluster run one after the other, where several processes run tests (`-n`)."""
    return ByGroup(config, log) if config.getvalue("dist") == "loadgroup" else None


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Run more tests at once than there are cores: most wait for processes, and three leave a third of two cores idle.

    The fast tests (`-n logical`) wait for nothing: each process beyond the cores would only collect them once more.
    """
    cores = os.cpu_count() or 2
    return min(cores, 4) if config.option.numprocesses == "logical" else AT_ONCE


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print how many tests of each part passed, failed or were skipped, and which of them are unstable."""
    counts: dict[str, Counter[str]] = {}
    for outcome in OUTCOMES:
        for report in terminalreporter.stats.get(outcome, []):
            counts.setdefault(part_of(report.nodeid), Counter())[outcome] += 1
    if path := config.getoption("record"):
        results.record(path, counts)
    if len(counts) > 1:
        terminalreporter.section("tests by part")
        for part, found in sorted(counts.items()):
            told = ", ".join(f"{number} {outcome}" for outcome, number in found.items())
            terminalreporter.line(f"{part}: {told}")
    unstable = [report.nodeid for report in terminalreporter.stats.get("passed", [])]
    if config.getoption("second_try") and unstable:
        terminalreporter.section("unstable tests: they failed, and passed when tried again; mend them")
        for node in sorted(unstable):
            terminalreporter.line(f"unstable: {node}")


def group_of(node: str) -> str:
    """Name the tests that must run one after the other with this one: those of its file, or of its cluster.

    >>> group_of("tests/integration/lws/test_claims.py::test_each[kubernetes-leader]")
    'integration/lws on Kubernetes'
    >>> group_of("tests/unit/kuberuntime/objects/test_names.py::test_it[1]")
    'unit/kuberuntime/objects/test_names.py'
    """
    file = node.partition("::")[0].removeprefix("tests/")
    if file in PAGES:
        return "pages"
    shared = next((folder for folder in SHARED if file.startswith(f"{folder}/")), file)
    return " ".join([shared, *clusters_of(node)])


def clusters_of(node: str) -> list[str]:
    """Return which clusters a test has as parameter; fast tests, whose parameters may be any text, have none.

    >>> clusters_of("tests/unit/localkube/test_it.py::test_it[x-kubernetes-list-type]")
    []
    """
    found = PARTS.match(node)
    parameters = ((found and found["part"] != "unit" and found["parameters"]) or "").split("-")
    return [CLUSTERS[one] for one in parameters if one in CLUSTERS]


def part_of(node: str) -> str:
    """Name the part of the suite, and the cluster where a test has one as parameter.

    >>> part_of("tests/integration/lws/test_claims.py::test_each[kubernetes-leader]")
    'integration on Kubernetes'
    >>> part_of("tests/unit/kuberuntime/objects/test_names.py::test_it")
    'unit'
    """
    found = PARTS.match(node)
    if found is None:
        return node
    return " ".join([found["part"], *clusters_of(node)])
