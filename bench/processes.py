"""Measures processes of benchmarks: CPU time, memory, wake-ups, and the writes of a cluster."""

import os
import re
import resource
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from localkube.kubelet.processes import processtree

LWS = [sys.executable, "-m", "lwsctl.cli"]


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


def revision(directory: str) -> int:
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
