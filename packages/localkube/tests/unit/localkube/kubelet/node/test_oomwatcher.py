"""Tests which containers have their memory checked, when the checks run, and what happens above the limit."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager

import pytest

from localkube.kubelet.node.oomwatcher import MemoryLimit, OOMWatcher
from localkube.kubelet.processes.runner import ResourceUsage
from localkube.kubelet.processes.simulatedrunner import SimulatedRunner

pytestmark = pytest.mark.virtual_time


class Machine(SimulatedRunner):
    """Containers with this resident memory. Half of it consists of pages that their processes share."""

    def __init__(self, resident: int) -> None:
        super().__init__()
        self.resident = resident
        self.readings = 0

    async def read_usage(self, pids: Collection[int]) -> Mapping[int, ResourceUsage]:
        self.readings += 1
        return {pid: ResourceUsage(0.0, self.resident) for pid in pids}

    async def read_memory(self, pid: int) -> int:
        return self.resident // 2


@asynccontextmanager
async def watching(machine: Machine, *limits: int) -> AsyncIterator[dict[int, int]]:
    """Watch containers with these limits. Yield containers that exceed their limits."""
    exceeded: dict[int, int] = {}
    watch = OOMWatcher(machine)

    def limited(limit: int) -> MemoryLimit:
        async def exceed(memory: int) -> None:
            exceeded[limit] = memory

        return MemoryLimit(limit or 1, lambda: limit, exceed)

    task = asyncio.create_task(watch.run())
    for limit in limits:
        watch.add(str(limit), limited(limit))
    yield exceeded
    task.cancel()


async def test_container_above_its_limit_is_reported_once() -> None:
    machine = Machine(resident=600)
    async with watching(machine, 299, 300, 0) as exceeded:
        await asyncio.sleep(1.5)
        assert exceeded == {299: 300}
        exceeded.clear()
        await asyncio.sleep(10)
        assert exceeded == {}


async def test_nothing_is_read_without_a_limited_container() -> None:
    machine = Machine(resident=600)
    async with watching(machine):
        await asyncio.sleep(100)
    async with watching(machine, 0, 0):
        await asyncio.sleep(100)
    assert machine.readings == 0
    async with watching(machine, 100):
        await asyncio.sleep(100)
    assert machine.readings == 1


async def test_limit_that_a_resize_adds_is_enforced() -> None:
    limit, exceeded = 0, asyncio.Event()

    async def exceed(_memory: int) -> None:
        exceeded.set()

    watch = OOMWatcher(Machine(resident=600))
    task = asyncio.create_task(watch.run())
    watch.add("web", MemoryLimit(1, lambda: limit, exceed))
    await asyncio.sleep(100)
    limit = 100
    async with asyncio.timeout(15):
        await exceeded.wait()
    task.cancel()
