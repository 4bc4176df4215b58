"""Runs a local cluster for a benchmark, and measures processes: CPU time, memory, wake-ups, and writes."""

import os
import re
import resource
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from localkube.kubelet.processes import processtree

LWS = [sys.executable, "-m", "lwsctl.cli"]

SLEEPERS = """
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {{name: sleepers}}
spec:
  replicas: {groups}
  leaderWorkerTemplate:
    size: 4
    workerTemplate:
      spec:
        containers: [{{name: main, image: none, command: [sleep, "3600"]}}]
"""
"""A LeaderWorkerSet of real processes."""

MANY = """
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {{name: many}}
spec:
  replicas: {groups}
  leaderWorkerTemplate:
    size: {size}
    workerTemplate:
      spec:
        containers: [{{name: main, image: vllm/vllm-openai, ports: [{{containerPort: 8000}}]{probe}}}]
"""
"""A LeaderWorkerSet for stub pods."""


@dataclass(frozen=True)
class LocalCluster:
    """A running cluster, and the environment of commands that use it."""

    home: Path
    name: str = "bench"

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment variables of commands."""
        return os.environ | {"LWS_STATE_HOME": str(self.home)}

    @property
    def directory(self) -> Path:
        """Return the directory in which the cluster stores its files."""
        return self.home / self.name

    @property
    def pid(self) -> int:
        """Return the process ID of the cluster."""
        return int((self.directory / "lock").read_text())

    def lws(self, *words: str) -> str:
        """Run a command with this cluster, and return its output."""
        words = (*LWS, f"--local={self.name}", *words)
        return subprocess.run(words, env=self.environment, check=True, capture_output=True, text=True).stdout

    def apply(self, manifest: str) -> None:
        """Apply a manifest."""
        path = self.home / "manifest.yaml"
        path.write_text(manifest)
        self.lws("apply", "-f", str(path))


@contextmanager
def local_cluster(*options: str) -> Iterator[LocalCluster]:
    """Run a cluster with these options of `lws up` in a temporary directory, and delete it afterwards."""
    with tempfile.TemporaryDirectory() as home:
        cluster = LocalCluster(Path(home))
        environment = cluster.environment
        subprocess.run([*LWS, "up", "bench", "--detach", *options], env=environment, check=True, capture_output=True)
        try:
            yield cluster
        finally:
            subprocess.run([*LWS, "down", "bench", "--delete"], env=environment, check=True, capture_output=True)


def cpu_seconds(pid: int) -> float:
    """Return the total CPU time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children_seconds() -> float:
    """Return the CPU time of all finished commands that this process started."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def processes(pid: int) -> list[int]:
    """Return the cluster process and its launcher processes, without containers."""
    tree = processtree.read()
    launchers = [process for process in processtree.descendants([pid], tree) if tree[process].name == "kube-launcher"]
    return [pid, *launchers, *(tree[launcher].parent for launcher in launchers if tree[launcher].parent != pid)]


def wakeups(pid: int) -> int:
    """Return the total number of times that the threads of a process were blocked."""
    texts = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/status")]
    return sum(
        int(number) for text in texts for number in re.findall(r"^voluntary_ctxt_switches:\s+(\d+)", text, re.MULTILINE)
    )


def revision(directory: str | Path) -> int:
    """Return the number of all writes to the cluster's store."""
    with closing(sqlite3.connect(f"file:{directory}/bench/state.db?mode=ro", uri=True)) as database:
        return int(database.execute("SELECT value FROM counters WHERE name = 'revision'").fetchone()[0])


def peak_memory(pid: int) -> float:
    """Return the peak memory of a process in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    match = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(match[1]) / 1024 if match else 0.0


def memory_mib(pid: int) -> float:
    """Return the current memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)
