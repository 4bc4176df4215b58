"""Reads from /proc what the processes of containers have used.

A container is the process that started its program, with all descendants: orphans come back to it (`launcher/supervise.py`).
What children had used is counted by who waited for them. Memory is what is resident: pages that several processes share
count in each of them.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from localkube.kubelet.processes.runner import Used

PROC: Final = Path("/proc")
KEEPER: Final = "kube-init"
"""The name of the process that starts the program of a container, and adopts its orphans."""

TICKS: Final = os.sysconf("SC_CLK_TCK")
PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class SeenProcess(NamedTuple):
    """What one process is and has used: ticks of its own and of the children it waited for, and resident pages."""

    name: str
    parent: int
    ticks: int
    pages: int


def read(pids: Collection[int], proc: Path = PROC) -> dict[int, Used]:
    """Return what containers have used, by the PID of their program; those that have ended are missing."""
    processes = dict(_processes(proc))
    children: dict[int, list[int]] = {}
    for pid, process in processes.items():
        children.setdefault(process.parent, []).append(pid)
    return {pid: _used(_top(pid, processes), processes, children) for pid in pids if pid in processes}


def _top(pid: int, processes: Mapping[int, SeenProcess]) -> int:
    parent = processes[pid].parent
    return parent if parent in processes and processes[parent].name == KEEPER else pid


def _used(top: int, processes: Mapping[int, SeenProcess], children: Mapping[int, list[int]]) -> Used:
    found, waiting = [], [top]
    while waiting:
        pid = waiting.pop()
        found.append(processes[pid])
        waiting += children.get(pid, ())
    return Used(sum(one.ticks for one in found) / TICKS, sum(one.pages for one in found) * PAGE)


def _processes(proc: Path) -> Iterator[tuple[int, SeenProcess]]:
    """Yield the processes of this machine; one that ends meanwhile is left out."""
    for path in proc.iterdir() if proc.is_dir() else ():
        if path.name.isdecimal():
            try:
                yield int(path.name), parse((path / "stat").read_text(errors="replace"))
            except (OSError, ValueError, IndexError):
                continue


def parse(stat: str) -> SeenProcess:
    """Read /proc/PID/stat. The name stands in parentheses, and may contain some.

    >>> parse("7 (a) b) S 1 7 7 0 -1 4194304 9 0 0 0 10 20 3 4 20 0 1 0 5 4096 12 18446744073709551615")
    SeenProcess(name='a) b', parent=1, ticks=37, pages=12)
    """
    head, _, rest = stat.rpartition(")")
    fields = rest.split()
    return SeenProcess(head.partition("(")[2], int(fields[1]), sum(map(int, fields[11:15])), int(fields[21]))
