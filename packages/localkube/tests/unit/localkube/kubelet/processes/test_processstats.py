"""Tests the resource usage of containers with a fake /proc directory and with the real directory."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from localkube.kubelet.processes import processstats


def add(
    proc: Path, pid: int, parent: int, name: str = "sh", ticks: tuple[int, int, int, int] = (0, 0, 0, 0), pages: int = 0
) -> None:
    used = " ".join(map(str, ticks))
    (proc / str(pid)).mkdir(parents=True)
    text = f"{pid} ({name}) S {parent} 1 1 0 -1 4194304 9 0 0 0 {used} 20 0 1 0 5 4096 {pages} 1844"
    (proc / str(pid) / "stat").write_text(text)


def test_container_includes_all_descendants_of_its_keeper(tmp_path: Path) -> None:
    """The init process becomes the parent of an orphan. Other processes of the same launcher are not counted."""
    add(tmp_path, 1, 0, "launcher", (100, 0, 0, 0), 50)
    add(tmp_path, 2, 1, processstats.KEEPER, (1, 1, 0, 0), 1)
    add(tmp_path, 3, 2, "python) 3", (10, 20, 30, 40), 5)
    add(tmp_path, 4, 3, "child", (100, 0, 0, 0), 2)
    add(tmp_path, 5, 2, "orphan", (0, 0, 0, 98), 1)
    add(tmp_path, 6, 1, "stub", (7, 0, 0, 0), 3)
    (tmp_path / "self").mkdir()
    (tmp_path / "9").mkdir()
    found = processstats.read_usage({3, 6, 99}, str(tmp_path))
    assert found[3].seconds == 300 / processstats.TICKS
    assert found[3].memory == 9 * processstats.PAGE
    assert found[6].seconds == 7 / processstats.TICKS
    assert set(found) == {3, 6}


def test_shared_pages_count_once_in_the_memory_of_a_container(tmp_path: Path) -> None:
    """If the proportional memory of a process cannot be read, its resident memory is counted.

    The init process does not count.
    """
    add(tmp_path, 2, 1, processstats.KEEPER, pages=1000)
    add(tmp_path, 3, 2, "program", pages=50)
    add(tmp_path, 4, 3, "child", pages=50)
    add(tmp_path, 5, 2, "orphan", pages=7)
    for pid, kibibytes in ((2, 4000), (3, 120), (4, 80)):
        (tmp_path / str(pid) / "smaps_rollup").write_text(
            f"0-1 ---p 0 0 0 [rollup]\nRss: 200 kB\nPss: {kibibytes} kB\n"
        )
    assert processstats.read_memory(3, str(tmp_path)) == 200 * 1024 + 7 * processstats.PAGE
    assert processstats.read_memory(99, str(tmp_path)) == 0


def test_machine_without_proc_measures_nothing(tmp_path: Path) -> None:
    assert processstats.read_usage({1}, str(tmp_path / "absent")) == {}


@pytest.mark.slow
def test_cpu_time_of_a_busy_process_increases() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            deadline = time.monotonic() + 60
            while processstats.read_usage({busy.pid})[busy.pid].seconds < 0.2:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            assert processstats.read_usage({busy.pid})[busy.pid].memory > os.sysconf("SC_PAGE_SIZE")
        finally:
            busy.kill()
    assert processstats.read_usage({busy.pid}) == {}
