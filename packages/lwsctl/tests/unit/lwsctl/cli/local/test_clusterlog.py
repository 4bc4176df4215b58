"""Tests that the log of a detached cluster has a limited size."""

import subprocess
import sys
from pathlib import Path

import pytest

from lwsctl.cli.cluster.clusterdirectories import ClusterDirectory
from lwsctl.cli.local import clusterlog

WRITE = """
import logging, os, sys
from pathlib import Path
from lwsctl.cli.local import clusterlog
from lwsctl.cli.cluster.clusterdirectories import ClusterDirectory

place = ClusterDirectory("demo", Path(sys.argv[1]))
sys.stderr = clusterlog.BoundedLog(place, limit=10_000)
if "full" in sys.argv:
    os.mkdir(place.log.with_suffix(".new"))
for number in range(1000):
    logging.error("event %d %s", number, "x" * 90)
os.write(1, b"last words")
"""


def write(place: ClusterDirectory, *words: str) -> None:
    with place.log.open("ab") as log:
        subprocess.run(
            [sys.executable, "-c", WRITE, str(place.directory), *words],
            stdout=log,
            stderr=log,
            check=True,
            timeout=60,
        )


@pytest.fixture
def place(tmp_path: Path) -> ClusterDirectory:
    return ClusterDirectory("demo", tmp_path)


def test_full_log_is_rotated(place: ClusterDirectory) -> None:
    write(place)
    assert place.log.read_text().splitlines()[-2].startswith("ERROR:root:event 999 ")
    assert place.log.read_text().endswith("last words")
    assert 10_000 <= place.older_log.stat().st_size < 11_000
    assert place.log.stat().st_size < 11_000
    assert sorted(path.name for path in place.directory.iterdir()) == ["cluster.log", "cluster.log.1"]


def test_log_that_cannot_be_rotated_is_truncated(place: ClusterDirectory) -> None:
    write(place, "full")
    assert place.log.stat().st_size < 11_000


def test_other_standard_error_is_not_replaced(place: ClusterDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    place.log.write_text("")
    with (place.directory / "other").open("w") as other:
        monkeypatch.setattr(sys, "stderr", other)
        clusterlog.limit_log(place)
        assert sys.stderr is other
