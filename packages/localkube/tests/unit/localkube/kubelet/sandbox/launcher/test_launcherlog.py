"""Tests that the size of the launcher log is limited for any amount of output."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from localkube.kubelet.sandbox.launcher.launcherlog import BoundedLog
from localkube.statedirectory import open_private

LIMIT = 1000


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    with open_private(tmp_path / "log") as file:
        yield file.fileno()


def test_lines_are_written_immediately(tmp_path: Path, descriptor: int) -> None:
    print("one", file=BoundedLog(descriptor, LIMIT))

    assert (tmp_path / "log").read_text() == "one\n"


def test_full_log_keeps_its_newer_half(tmp_path: Path, descriptor: int) -> None:
    log = BoundedLog(descriptor, LIMIT)
    sizes = []
    for number in range(500):
        print(f"{number:09}", file=log)
        sizes.append(os.fstat(descriptor).st_size)

    lines = (tmp_path / "log").read_text().splitlines()
    assert max(sizes) <= LIMIT + 10
    assert lines[-40:] == [f"{number:09}" for number in range(460, 500)]


def test_larger_log_is_reduced(tmp_path: Path, descriptor: int) -> None:
    os.write(descriptor, b"x" * 10 * LIMIT)
    BoundedLog(descriptor, LIMIT).write("new\n")

    assert os.fstat(descriptor).st_size == LIMIT // 2 + 4
    assert (tmp_path / "log").read_text().endswith("xnew\n")


def test_long_text_keeps_its_end(tmp_path: Path, descriptor: int) -> None:
    BoundedLog(descriptor, LIMIT).write("x" * 5000 + "end")

    assert os.fstat(descriptor).st_size == LIMIT // 2
    assert (tmp_path / "log").read_text().endswith("xend")
