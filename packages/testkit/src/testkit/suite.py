"""Implements the pytest plugin that selects, prepares, distributes and counts all tests.

Each test that is a coroutine runs in its own event loop, in virtual time if it has the mark.
"""

import asyncio
import gc
import os
import re
import signal
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

import pytest
import structlog
from structlog.dev import ConsoleRenderer, plain_traceback
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from testkit import coroutines, examples, virtualtime

PARTS: Final = re.compile(r"(?:packages/\w+/)?tests/(?P<part>\w+)/[^\[]*(\[(?P<parameters>.*)\])?")
CLUSTERS: Final = {
    "virtual": "in virtual time",
    "embedded": "on the embedded cluster",
    "kubernetes": "on Kubernetes",
    "other_version": "on the other Kubernetes",
}
OUTCOMES: Final = ("passed", "failed", "error", "skipped")
PRODUCT: Final = "packages/leaderworkerset/tests"
SHARED: Final = (
    "packages/localkube/tests/conformance/controllers",
    "packages/localkube/tests/conformance",
    f"{PRODUCT}/integration/lws",
    f"{PRODUCT}/integration/kueue",
    *(f"packages/lwsctl/tests/integration/{name}" for name in ("lwsctl", "queues")),
    f"{PRODUCT}/parity",
    *(f"tests/kubernetes/{name}" for name in ("gang", "install", "kubectl", "lwsoperator", "manager", "shipped")),
    "tests/node",
)
"""The directories whose tests share a cluster that is started once."""

UNIT: Final = "/tests/unit/"
SIMULATION: Final = "/tests/simulation/"
"""The directory whose tests are distributed one by one, because each test runs its own cluster."""

GENERATED: Final = "packages/localkube/tests/conformance/test_generated.py"
"""The file with generated sequences, which have no recorded responses."""

LIVE: Final = ("tests/kubernetes/", "packages/leaderworkerset/tests/parity/test_handover_to_go.py", GENERATED)
"""The directories and files whose tests need the Kubernetes executables, with any parameters."""

BOTH: Final = ("packages/localkube/tests/conformance/",)
"""The directories whose tests compare responses with recorded ones.

With `--tier kubernetes`, they compare them with running Kubernetes components.
"""

NODE: Final = "tests/node/"
"""The directory whose tests need a real node."""

FAILED: Final[list[str]] = []
"""The failed test whose objects are not yet collected. Each worker process runs its own tests."""

BROWSER: Final = "tests/browser/"
"""The directory whose tests only `make browser` runs."""

CHECKED: Final = ("tests/repository/test_language.py", "tests/repository/test_budgets.py")
"""The tests that `make check` runs."""

PAGES: Final = ("tests/e2e/test_documents.py", "tests/e2e/test_examples.py")
"""The tests that must not run concurrently, because some of their commands use port 8080."""

Tier: TypeAlias = Literal["fast", "kubernetes", "node"]
"""The test tiers: `make test`, tests that are long or need a control plane, and tests that need a node."""

COMMANDS: Final = "tests/e2e/"
"""The directory whose tests start real processes for each step. Most of them are in the second tier."""

SHOWN: Final = (*PAGES, "tests/e2e/test_first_hour.py")
"""The tests of this directory in the first tier: the documented commands, one example, and the tutorial."""

GUIDES: Final = "tests/e2e/test_documents.py::test_commands_of_a_page_have_the_documented_result[docs/how-to/"
"""The tests of the how-to guides, which are in the second tier."""

MOST_UNSTABLE: Final = 3
"""The maximum number of tests in a run that pass only on the second attempt."""

AT_ONCE: Final = 4
"""The number of concurrent tests in `make test`."""

COLLECT_AFTER: Final = 10_000
"""The number of new objects after which the garbage collector runs."""


def pytest_configure() -> None:
    """Make Ctrl-C stop the tests in the background. Shells make background processes and their children ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    examples.load_profile()
    # To draw a traceback with frames and locals takes a tenth of a second, and much is logged.
    ConsoleRenderer.get_active().exception_formatter = plain_traceback


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options for the second attempt of `make test` (with `--last-failed`), and for recorded counts."""
    parser.addoption("--second-try", action="store_true", help="list the tests that passed when they were retried")
    parser.addoption(
        "--tier",
        choices=get_args(Tier),
        help="run only the tests of `make test`, `make test-kubernetes` or `make test-node`",
    )
    parser.addoption("--record", type=Path, metavar="FILE", help="file for counts of this run (tests/results.py)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests of other tiers. Start long groups first, so that all processes end together."""
    if tier := config.getoption("tier"):
        groups: dict[bool, list[pytest.Item]] = {True: [], False: []}
        for item in items:
            groups[tier in tiers_of_item(item)].append(item)
        config.hook.pytest_deselected(items=groups[False])
        items[:] = groups[True]
    items.sort(key=lambda item: order_of(item.nodeid))


def tiers_of_item(item: pytest.Item) -> tuple[Tier, ...]:
    """Return the tiers of a test. A long test is always in the second tier."""
    is_long = item.get_closest_marker("long") is not None and not item.nodeid.startswith(NODE)
    return ("kubernetes",) if is_long else tiers_of(item.nodeid)


def tiers_of(node: str) -> tuple[Tier, ...]:
    """Return the tiers of a test by its path and its parameters.

    >>> tiers_of("packages/leaderworkerset/tests/integration/lws/test_claims.py::test_each[kubernetes-leader]")
    ('kubernetes',)
    """
    if node.startswith(NODE):
        return ("node",)
    if node.startswith((BROWSER, *CHECKED)):
        return ()
    if node.startswith(BOTH) and not node.startswith(LIVE):
        return ("fast", "kubernetes")
    if node.startswith(COMMANDS):
        return ("fast",) if node.startswith(SHOWN) and not node.startswith(GUIDES) else ("kubernetes",)
    is_live = node.startswith(LIVE) or not {*clusters_of(node)} <= {CLUSTERS["virtual"], CLUSTERS["embedded"]}
    return ("kubernetes",) if is_live else ("fast",)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Reset structlog before each test without a shared cluster, because tests with one change its configuration.

    A fixture would do the same, but take longer for thousands of tests.
    """
    if order_of(item.nodeid) > 0:
        structlog.reset_defaults()


@pytest.hookimpl
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test, in virtual time if the test or its module has the mark."""
    is_virtual = pyfuncitem.get_closest_marker("virtual_time")
    return coroutines.run_test(pyfuncitem, virtualtime.run if is_virtual else asyncio.run)


def pytest_collection_finish() -> None:
    """Exclude the thousands of collected tests from garbage collection, because they exist until the end.

    Tests create many objects and keep few: with Python's threshold of 700 objects, a tenth of the time is spent on
    collections.
    """
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)


class ByGroup(LoadScopeScheduling):  # type: ignore[misc]  # pytest-xdist has no types
    """Runs the tests of a group in one process, one after the other.

    The marker `xdist_group` has the same purpose, but pytest-xdist 3.8 ignores it with pytest 9.2.
    """

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)

    def _pending_of(self, workload: dict[str, dict[str, bool]]) -> int:
        """Remove completed groups before pending tests are counted, which happens after each test."""
        for scope in [scope for scope, tests in workload.items() if all(tests.values())]:
            del workload[scope]
        return int(super()._pending_of(workload))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """Return a scheduler that runs tests of a shared cluster in one process.

    It is used if several processes run tests (`-n`).
    """
    return ByGroup(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.hookimpl(tryfirst=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Run more concurrent tests than there are cores, because most tests wait for processes.

    Three tests use only two thirds of two cores.

    The fast tests (`-n logical`) do not wait: a further process would only collect them once more. Without `tryfirst`,
    pytest-xdist itself answers first.
    """
    cores = os.cpu_count() or 2
    return min(cores, 4) if config.option.numprocesses == "logical" else AT_ONCE


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Record whether the last test of this process failed."""
    if report.failed:
        FAILED.append(report.nodeid)


@pytest.hookimpl(trylast=True)
def pytest_runtest_logfinish(nodeid: str) -> None:
    """Collect what a failed test did not close. Otherwise, the warnings about it make a later test fail."""
    if nodeid in FAILED:
        FAILED.clear()
        for name in ("last_type", "last_value", "last_traceback", "last_exc"):  # pytest keeps the frames of the test
            vars(sys).pop(name, None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gc.collect()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the numbers of passed, failed and skipped tests of each part, and the flaky tests."""
    counts: dict[str, Counter[str]] = {}
    for outcome in OUTCOMES:
        for report in terminalreporter.stats.get(outcome, []):
            counts.setdefault(part_of(report.nodeid), Counter())[outcome] += 1
    if path := config.getoption("record"):
        from tests import results

        results.record(path, counts)
    if len(counts) > 1:
        terminalreporter.section("tests by part")
        for part, outcomes in sorted(counts.items()):
            summary = ", ".join(f"{number} {outcome}" for outcome, number in outcomes.items())
            terminalreporter.line(f"{part}: {summary}")
    if unstable := unstable_tests(terminalreporter, config):
        terminalreporter.section("unstable tests, which failed and then passed when retried")
        for node in unstable:
            terminalreporter.line(f"unstable: {node}")
        if len(unstable) > MOST_UNSTABLE:
            terminalreporter.line(
                f"{len(unstable)} tests are unstable, but at most {MOST_UNSTABLE} are permitted, so the run fails"
            )


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the second attempt if too many tests pass only then."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    is_passed = session.exitstatus == pytest.ExitCode.OK
    if reporter and is_passed and len(unstable_tests(reporter, session.config)) > MOST_UNSTABLE:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def unstable_tests(reporter: pytest.TerminalReporter, config: pytest.Config) -> list[str]:
    """Return the tests that passed on the second attempt after they failed on the first one."""
    reports = reporter.stats.get("passed", []) if config.getoption("second_try") else []
    return sorted(report.nodeid for report in reports)


def group_of(node: str) -> str:
    """Return the cluster, the file or the name of a test. Tests in the same group must not run concurrently.

    >>> group_of("packages/leaderworkerset/tests/integration/lws/test_claims.py::test_each[kubernetes-leader]")
    'packages/leaderworkerset/tests/integration/lws on Kubernetes'
    >>> group_of("tests/kubernetes/manager/test_rest.py::test_idle_managers_write_nothing")
    'tests/kubernetes/manager'
    >>> group_of("packages/kuberuntime/tests/unit/kuberuntime/objects/test_names.py::test_it[1]")
    'packages/kuberuntime/tests/unit/kuberuntime/objects/test_names.py'
    >>> group_of("packages/leaderworkerset/tests/simulation/test_month.py::test_it[1]")
    'packages/leaderworkerset/tests/simulation/test_month.py::test_it[1]'
    """
    if SIMULATION in node:
        return node
    file = node.partition("::")[0]
    if file in PAGES:
        return "pages"
    shared = next((folder for folder in SHARED if file.startswith(f"{folder}/")), file)
    return " ".join([shared, *clusters_of(node)])


def order_of(node: str) -> int:
    """Return the position of a test. Groups with several files are first, and unit tests are last.

    >>> [order_of(f"packages/leaderworkerset/tests/{part}/test_it.py::test_it") for part in ("parity", "fuzz", "unit")]
    [0, 2, 3]
    """
    if node.partition("::")[0] in PAGES or any(node.startswith(f"{folder}/") for folder in SHARED):
        return 0
    if SIMULATION in node:
        return 1
    return 3 if UNIT in node else 2


def clusters_of(node: str) -> list[str]:
    """Return the clusters in a test's parameters. Fast tests have none, and their parameters may be any strings.

    >>> clusters_of("packages/localkube/tests/unit/localkube/test_it.py::test_it[x-kubernetes-list-type]")
    []
    """
    match = PARTS.match(node)
    parameters = ((match and match["part"] != "unit" and match["parameters"]) or "").split("-")
    return [CLUSTERS[parameter] for parameter in parameters if parameter in CLUSTERS]


def part_of(node: str) -> str:
    """Return the part of the test suite that contains a test, with its cluster if that is a parameter.

    >>> part_of("packages/leaderworkerset/tests/integration/lws/test_claims.py::test_each[kubernetes-leader]")
    'integration on Kubernetes'
    >>> part_of("packages/kuberuntime/tests/unit/kuberuntime/objects/test_names.py::test_it")
    'unit'
    """
    match = PARTS.match(node)
    if match is None:
        return node
    return " ".join([match["part"], *clusters_of(node)])
