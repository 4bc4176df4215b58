"""Reads the processes of a machine, and their descendants, from its /proc.

The launcher imports this module, so it uses little of the standard library.
"""

import os
from collections.abc import Iterable, Mapping
from typing import NamedTuple


class ProcessInfo(NamedTuple):
    """The state and usage of one process: its ticks, the ticks of reaped children, and resident pages."""

    name: str
    state: str
    parent: int
    own_ticks: int
    ticks_of_children: int
    pages: int


def read(proc: str = "/proc") -> dict[int, ProcessInfo]:
    """Return the processes by PID, without processes that exit in the meantime."""
    processes = {}
    for name in os.listdir(proc) if os.path.isdir(proc) else ():
        if name.isdigit():
            try:
                with open(f"{proc}/{name}/stat", errors="replace") as file:
                    processes[int(name)] = parse(file.read())
            except (OSError, ValueError, IndexError):
                continue
    return processes


def parse(stat: str) -> ProcessInfo:
    """Parse /proc/PID/stat. The name is in parentheses, and can contain parentheses.

    >>> parse("7 (a) b) S 1 7 7 0 -1 4194304 9 0 0 0 10 20 3 4 20 0 1 0 5 4096 12 18446744073709551615")
    ProcessInfo(name='a) b', state='S', parent=1, own_ticks=30, ticks_of_children=7, pages=12)
    """
    head, _, rest = stat.rpartition(")")
    fields = rest.split()
    ticks = [*map(int, fields[11:15])]
    name, state, parent = head.partition("(")[2], fields[0], int(fields[1])
    return ProcessInfo(name, state, parent, sum(ticks[:2]), sum(ticks[2:]), int(fields[21]))


def descendants(roots: Iterable[int], processes: Mapping[int, ProcessInfo]) -> list[int]:
    """Return all processes below the roots, each after its parent."""
    children: dict[int, list[int]] = {}
    for pid, process in processes.items():
        children.setdefault(process.parent, []).append(pid)
    pids: list[int] = []
    pending = list(roots)
    while pending:
        below = children.pop(pending.pop(), [])
        pids += below
        pending += below
    return pids
