"""Stores test results by version as JSON lines. docs/reference/compatibility.md is generated from them.

`pytest --record FILE`, as `make nightly` calls it, replaces the counts of the same part, Kubernetes and Python by the
counts of this run. Runs in which a test failed count as well.
"""

import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec
from tests.controlplane import build

import leaderworkerset

OF_CLUSTERS: Final = {"on Kubernetes": "kubernetes", "on the other Kubernetes": "other_version"}
"""Name suffixes of test parts that ran on a control plane, with the control plane of each suffix."""


class Result(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result counts of one test part, with the versions of Python and Kubernetes."""

    part: str
    python: str
    kubernetes: str = ""
    version: str
    day: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    @property
    def identity(self) -> tuple[str, str, str]:
        """The key of a result. A newer result replaces a result with the same key."""
        return self.part, self.kubernetes, self.python.rpartition(".")[0]


def results(counts: Mapping[str, Mapping[str, int]], now: datetime) -> list[Result]:
    """Return the results of a run from its counts by part and outcome."""
    found = []
    for name, outcomes in counts.items():
        cluster = next((place for place in OF_CLUSTERS if name.endswith(f" {place}")), "")
        one = Result(
            part=name.removesuffix(f" {cluster}") if cluster else name,
            python=platform.python_version(),
            kubernetes=build.VERSIONS[build.CLUSTERS[OF_CLUSTERS[cluster]]] if cluster else "",
            version=leaderworkerset.__version__,
            day=f"{now:%Y-%m-%d}",
            passed=outcomes.get("passed", 0),
            failed=outcomes.get("failed", 0) + outcomes.get("error", 0),
            skipped=outcomes.get("skipped", 0),
        )
        found.append(one)
    return found


def read(path: Path) -> list[Result]:
    """Return the results in a file, or an empty list if it does not exist."""
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [msgspec.json.decode(line, type=Result) for line in lines]


def record(path: Path, counts: Mapping[str, Mapping[str, int]]) -> None:
    """Write the results of a run. Each result replaces the previous result of the same kind."""
    kept = {one.identity: one for one in [*read(path), *results(counts, datetime.now(UTC))]}
    lines = [msgspec.json.encode(kept[identity]) for identity in sorted(kept)]
    path.write_bytes(b"\n".join([*lines, b""]))
