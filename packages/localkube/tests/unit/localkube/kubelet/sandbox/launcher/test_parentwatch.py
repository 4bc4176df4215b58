"""Tests that the log size of the process that forwards packets from pods is limited."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from localkube.kubelet.sandbox import egress
from localkube.kubelet.sandbox.launcherprocess import DIRECTORY

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's signal at the end of a parent")


def leashed(log: Path, limit: int, script: str) -> int:
    """Run a script in the same way as `Egress` runs a carrier. Return the exit code."""
    loader = [sys.executable, "-I", "-S", "-c", egress._LOADER, str(DIRECTORY), str(os.getpid()), str(limit)]
    with log.open("ab") as file:
        return subprocess.run([*loader, "/bin/sh", "-c", script], stdout=file, stderr=file, check=False).returncode


def test_program_continues_when_its_log_is_full(tmp_path: Path) -> None:
    assert leashed(tmp_path / "log", 5000, "echo begun; head -c 30000 /dev/zero; exit 7") == 7
    assert (tmp_path / "log").stat().st_size == 5000
    assert (tmp_path / "log").read_bytes().startswith(b"begun\n")
