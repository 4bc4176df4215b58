"""Represents a measured manager, the phases of its work, and its usage in each phase."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
from bench.processes import cpu_seconds, memory_mib
from bench.record import Line, report
from tests.integration.clusters import objects
from tests.kubernetes.manager.groups import CheckedNamespace
from tests.kubernetes.manager.replicas import until
from tests.kubernetes.manager.world import InstalledCluster

from kuberuntime.client.transport import Request
from kuberuntime.objects import meta
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import PODS
from leaderworkerset.api.resources import LEADERWORKERSETS

POLL = 0.2
LIMIT = 1800.0
"""The timeout in seconds for a phase. A longer phase fails the run."""

AT_ONCE = 32
SETTLE = 10.0
USUAL_ELECTION = {"leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "2s"}


@dataclass
class Bench:
    """A manager of one run, with its process, the port of its webhooks, and its measurements."""

    world: InstalledCluster
    space: CheckedNamespace
    manager: str
    run: int
    process: int
    webhooks: int
    lines: list[Line]
    replace: Callable[[float], Awaitable[int]]
    """Kills the manager, restarts it after `seconds`, and returns its process."""
    spent: float = 0.0
    """The CPU time of killed processes."""

    def cpu_seconds(self) -> float:
        """Return the CPU time of the manager."""
        return self.spent + cpu_seconds(self.process)

    async def restart(self, absence: float) -> None:
        """Kill the manager, and restart it later."""
        self.spent = self.cpu_seconds()
        self.process = await self.replace(absence)

    @asynccontextmanager
    async def phase(self, measurement: str, **facts: Any) -> AsyncIterator[Line]:
        """Measure the work in the context, which can add numbers to the line."""
        mark, cpu, start = self.world.audit.mark(), self.cpu_seconds(), time.monotonic()
        accepted = self.world.balancer.accepted
        more: Line = {}
        yield more
        seconds = time.monotonic() - start
        writes = self.world.writes(mark)
        line = {
            "seconds": round(seconds, 2),
            "cpu_seconds": round(self.cpu_seconds() - cpu, 2),
            "writes": sum(writes.values()),
            "event_writes": sum(count for write, count in writes.items() if "events" in write),
            "status_writes": sum(count for write, count in writes.items() if write.endswith("/status")),
            "connections": self.world.balancer.accepted - accepted,
            "mebibytes": memory_mib(self.process),
        }
        line |= more
        report(measurement, server=self.manager, run=self.run, **facts, **line, kinds=writes)
        self.lines.append({"measurement": measurement, "server": self.manager, "run": self.run, **line})

    async def create(self, name: str, replicas: int, size: int, **fields: Any) -> None:
        """Create a LeaderWorkerSet. `fields` are the arguments of `objects.lws`."""
        lws = objects.lws(name, replicas=replicas, size=size, **fields)
        lws["metadata"]["namespace"] = self.space.namespace
        await self.space.client.create(LEADERWORKERSETS, lws)

    async def wait_until_complete(self, name: str, replicas: int) -> None:
        """Wait until the status reports this number of ready and updated groups."""

        async def holds() -> bool:
            lws = await self.space.client.get(LEADERWORKERSETS, ObjectKey(self.space.namespace, name))
            status = meta.status(lws)
            counts = {int(status.get(field) or 0) for field in ("replicas", "readyReplicas", "updatedReplicas")}
            return counts == {replicas} and status.get("observedGeneration") in (None, meta.generation(lws))

        await until(holds, *self.world.replicas, seconds=LIMIT, poll=POLL)

    async def pods(self, count: int) -> None:
        """Wait until this number of pods exists."""

        async def holds() -> bool:
            return await self.count() == count

        await until(holds, *self.world.replicas, seconds=LIMIT, poll=POLL)

    async def count(self) -> int:
        """Return the number of pods without reading the pods."""
        request = Request("GET", PODS.path(self.space.namespace), (("limit", "1"),), {}, b"")
        page = msgspec.json.decode((await self.space.client.send(request)).body)
        return len(page["items"]) + int(page["metadata"].get("remainingItemCount") or 0)


async def in_turn(names: Iterable[str], create: Callable[[str], Coroutine[Any, Any, None]]) -> None:
    """Create objects, some of them concurrently."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def create_named(name: str) -> None:
        async with gate:
            await create(name)

    async with asyncio.TaskGroup() as group:
        for name in names:
            group.create_task(create_named(name))
