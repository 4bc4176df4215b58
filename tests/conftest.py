"""Counts of the tests by part and cluster, above pytest's own last line."""

from collections import Counter
from pathlib import Path
from typing import Final

import pytest

CLUSTERS: Final = {"embedded": "on the embedded cluster", "kubernetes": "on Kubernetes"}
PARTS: Final = pytest.StashKey[dict[str, str]]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Remember for every test which part of the suite it is, and on which cluster it runs."""
    config.stash[PARTS] = {item.nodeid: part_of(item) for item in items}


def part_of(item: pytest.Item) -> str:
    """Name the part: the directory below `tests`, and the cluster where the test has one as parameter."""
    part = item.path.relative_to(Path(__file__).parent).parts[0]
    parameters = (
        item.callspec.params.values() if isinstance(item, pytest.Function) and hasattr(item, "callspec") else ()
    )
    clusters = [CLUSTERS[value] for value in parameters if isinstance(value, str) and value in CLUSTERS]
    return " ".join([part, *clusters])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Tell how many tests of each part passed, failed or were skipped."""
    parts = config.stash.get(PARTS, {})
    counts: dict[str, Counter[str]] = {}
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.stats.get(outcome, []):
            part = parts.get(getattr(report, "nodeid", ""))
            if part is not None:
                counts.setdefault(part, Counter())[outcome] += 1
    if len(counts) > 1:
        terminalreporter.section("tests by part")
        for part, found in sorted(counts.items()):
            told = ", ".join(f"{number} {outcome}" for outcome, number in found.items())
            terminalreporter.line(f"{part}: {told}")
