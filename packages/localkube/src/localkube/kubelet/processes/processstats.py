"""Reads the resource usage of container processes from /proc.

A container is the process that started its program, with all descendants: it adopts orphans (`launcher/containerinit.py`).
The usage of exited children is added to the process that waited for them. Memory in `read` is resident memory: pages
that several processes share count in each of them.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final

from localkube.kubelet.processes import processtree
from localkube.kubelet.processes.processtree import ProcessInfo
from localkube.kubelet.processes.runner import ResourceUsage

KEEPER: Final = "kube-init"
"""The name of the process that starts the main process of a container, and adopts orphaned processes."""

TICKS: Final = os.sysconf("SC_CLK_TCK")
PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def read_usage(pids: Collection[int], proc: str = "/proc") -> dict[int, ResourceUsage]:
    """Return the usage of containers by the PID of their main process, without exited containers."""
    processes = processtree.read(proc)
    usages = {}
    for pid in pids & processes.keys():
        own = [processes[member] for member in container_processes(pid, processes)]
        ticks = sum(process.own_ticks + process.ticks_of_children for process in own)
        usages[pid] = ResourceUsage(ticks / TICKS, sum(process.pages for process in own) * PAGE)
    return usages


def read_memory(pid: int, proc: str = "/proc") -> int:
    """Return the memory of the processes of a container in bytes. Shared pages are divided among their processes."""
    processes = processtree.read(proc)
    own = container_processes(pid, processes) if pid in processes else ()
    return sum(
        _proportional(Path(proc, str(member)), processes[member].pages * PAGE)
        for member in own
        if processes[member].name != KEEPER
    )


def container_processes(pid: int, processes: Mapping[int, ProcessInfo]) -> Iterator[int]:
    """Yield all processes of the container with this main process, which must be running."""
    parent = processes[pid].parent
    top = parent if parent in processes and processes[parent].name == KEEPER else pid
    yield top
    yield from processtree.descendants([top], processes)


def _proportional(directory: Path, resident: int) -> int:
    """Return the proportional memory of a process, or its resident memory if the kernel does not report it."""
    try:
        lines = (directory / "smaps_rollup").read_text().splitlines()
    except OSError:
        return resident
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), resident)
