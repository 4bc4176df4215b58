"""Finds containers that use more memory than their limit; the kernel of a node ends them.

Only the usage of running containers with a limit is read, from /proc. So no cgroup is needed, and a cluster without
limits reads nothing. A program that allocates and exits between two readings is missed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from localkube.kubelet.processes.runner import ProcessRunner

SHORTEST: Final = 1.0
"""Seconds between two readings."""

SHARE: Final = 0.02
"""The maximum share of the time that is spent on readings: they take longer on a machine with many processes."""


class Limited(NamedTuple):
    """A container: the PID of its program, its limit in bytes (0: none), and what to do with the usage above it."""

    pid: int
    limit: Callable[[], int]
    exceed: Callable[[int], Awaitable[None]]


class MemoryWatch:
    """Compares containers with their limits until it is cancelled."""

    def __init__(self, runner: ProcessRunner) -> None:
        self._runner = runner
        self._limited: dict[str, Limited] = {}
        self._added = asyncio.Event()

    def add(self, container_id: str, limited: Limited) -> None:
        """Compare a container until `discard`, or until it exceeds its limit."""
        self._limited[container_id] = limited
        self._added.set()

    def discard(self, container_id: str) -> None:
        """Compare a container no more."""
        self._limited.pop(container_id, None)

    async def run(self) -> None:
        """Read the usage once a second while there are containers with a limit."""
        now = asyncio.get_running_loop().time
        pause = SHORTEST
        while True:
            if not self._limited:
                self._added.clear()
                await self._added.wait()
            await asyncio.sleep(pause)
            begun = now()
            await self._compare()
            pause = max(SHORTEST, (now() - begun) / SHARE)

    async def _compare(self) -> None:
        limits = {name: (limited, limited.limit()) for name, limited in self._limited.items()}
        used = await self._runner.used([limited.pid for limited, limit in limits.values() if limit])
        for name, (limited, limit) in limits.items():
            if not 0 < limit < (used[limited.pid].memory if limited.pid in used else 0):
                continue
            # Pages that processes share count in each of them above: an upper bound that is cheap to read.
            memory = await self._runner.memory(limited.pid)
            if memory > limit and self._limited.get(name) is limited:
                self.discard(name)
                await limited.exceed(memory)
