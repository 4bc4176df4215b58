"""Tests that no process, mount or file of a cluster run remains on this machine."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from testkit.waiting import until
from tests.node import cluster
from tests.node.cgroups import hierarchies
from tests.node.cluster import NodeCluster
from tests.node.machine import await_end

RUN = """
import sys
from tests.node.cluster import NODES, run_directory
from tests.node.machine import machines
with run_directory() as directory, machines(directory, NODES, directory.name) as found:
    found[1].start("sleeper", ["sleep", "12345"])
    print(directory.name, *(machine.holder for machine in found), (found[1].directory / "sleeper.pid").read_text())
    sys.stdout.flush()
    sys.stdin.read()
"""


def mounts() -> str:
    """Return the mounts on this machine."""
    return subprocess.run(["mount"], capture_output=True, text=True, check=True).stdout


def test_killed_run_leaves_nothing(nodes: NodeCluster) -> None:
    before = mounts()
    with subprocess.Popen(
        [sys.executable, "-c", RUN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        name, *processes = process.stdout.readline().split()
        process.kill()
    for one in processes:
        await_end(int(one))
    until(lambda: not (cluster.runs() / name).exists(), f"{name} is removed")
    assert not any((hierarchy / name).exists() for hierarchy in hierarchies())
    assert mounts() == before
    assert nodes.directory.exists()


def test_completed_run_removes_only_its_own_directory(nodes: NodeCluster) -> None:
    """Other runs start and clean up in the meantime."""
    assert nodes.directory.exists()
    with ThreadPoolExecutor() as pool:
        with cluster.run_directory() as directory:
            (directory / "node1").mkdir()
            for number in range(5000):
                (directory / "node1" / str(number)).touch()
            sweeping = pool.submit(sweep_until_gone, directory)
        sweeping.result()
    assert not directory.exists()


def sweep_until_gone(directory: Path) -> None:
    """Repeatedly clean up killed runs until a run has completed."""
    while directory.exists():
        cluster.sweep()
