"""Detects containers that exceed their memory limit, which the kernel of a node would kill.

Only the usage of running containers with a limit is read, from /proc. So no cgroup is needed, and a cluster without
limits reads nothing. A program that allocates and exits between two readings is missed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from kuberuntime.timeouts import within
from localkube.kubelet.processes.runner import ProcessRunner

SHORTEST: Final = 1.0
"""The interval between two measurements, in seconds."""

UNLIMITED: Final = 10.0
"""The interval in seconds between two checks for limits that a resize added, if no container has a limit."""

SHARE: Final = 0.02
"""The maximum fraction of time for measurements, which take longer on a machine with many processes."""


class MemoryLimit(NamedTuple):
    """The PID of a container's main process, its limit in bytes (0: unlimited), and the callback for an excess."""

    pid: int
    limit: Callable[[], int]
    on_excess: Callable[[int], Awaitable[None]]


class OOMWatcher:
    """Compares the usage of containers with their limits until cancelled."""

    def __init__(self, runner: ProcessRunner) -> None:
        self._runner = runner
        self._limited: dict[str, MemoryLimit] = {}
        self._added = asyncio.Event()

    def add(self, container_id: str, limited: MemoryLimit) -> None:
        """Compare the usage of a container until `discard` is called, or until it exceeds its limit."""
        self._limited[container_id] = limited
        self._added.set()

    def discard(self, container_id: str) -> None:
        """Stop comparing the usage of a container."""
        self._limited.pop(container_id, None)

    async def run(self) -> None:
        """Measure the usage once per second while there are containers with a limit."""
        now = asyncio.get_running_loop().time
        pause = SHORTEST
        while True:
            await asyncio.sleep(pause)
            begun = now()
            limits = {name: (limited, limit) for name, limited in self._limited.items() if (limit := limited.limit())}
            if limits:
                await self._compare(limits)
                pause = max(SHORTEST, (now() - begun) / SHARE)
            else:
                pause = SHORTEST
                await self._wait_for_container()

    async def _wait_for_container(self) -> None:
        """Wait until a container is added, or for at most `UNLIMITED` if there are containers."""
        self._added.clear()
        with suppress(TimeoutError):
            async with within(UNLIMITED if self._limited else None):
                await self._added.wait()

    async def _compare(self, limits: Mapping[str, tuple[MemoryLimit, int]]) -> None:
        used = await self._runner.read_usage([limited.pid for limited, _ in limits.values()])
        for name, (limited, limit) in limits.items():
            if not limit < (used[limited.pid].memory if limited.pid in used else 0):
                continue
            # The measurement above counts shared pages in each process. This upper bound is fast to compute.
            memory = await self._runner.read_memory(limited.pid)
            if memory > limit and self._limited.get(name) is limited:
                self.discard(name)
                await limited.on_excess(memory)
