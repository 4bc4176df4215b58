"""Reads the resource usage of the processes of containers from /proc.

A container is the process that started its program, with all descendants: it adopts orphans (`launcher/supervise.py`).
The usage of exited children is added to the process that waited for them. Memory is resident memory: pages that several
processes share count in each of them.
"""

import os
from collections.abc import Collection
from typing import Final

from localkube.kubelet.processes import processtree
from localkube.kubelet.processes.runner import Used

KEEPER: Final = "kube-init"
"""The name of the process that starts the program of a container, and adopts its orphans."""

TICKS: Final = os.sysconf("SC_CLK_TCK")
PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def read(pids: Collection[int], proc: str = "/proc") -> dict[int, Used]:
    """Return the usage of containers by the PID of their program; exited containers are missing."""
    processes = processtree.read(proc)
    usages = {}
    for pid in pids & processes.keys():
        parent = processes[pid].parent
        top = parent if parent in processes and processes[parent].name == KEEPER else pid
        own = [processes[member] for member in (top, *processtree.descendants([top], processes))]
        ticks = sum(process.own_ticks + process.ticks_of_children for process in own)
        usages[pid] = Used(ticks / TICKS, sum(process.pages for process in own) * PAGE)
    return usages
