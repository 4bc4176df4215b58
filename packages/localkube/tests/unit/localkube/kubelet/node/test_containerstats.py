"""Tests the measurement of CPU usage, and which containers are omitted."""

import asyncio
from collections.abc import Collection, Mapping

import pytest
from testkit.virtualtime import VirtualClock

from kuberuntime.objects.meta import UID
from localkube.kubelet.node.containerstats import ContainerStats
from localkube.kubelet.processes.runner import ResourceUsage
from localkube.kubelet.processes.simulatedrunner import SimulatedRunner

pytestmark = pytest.mark.virtual_time

ONE = {1: (UID("a"), "main")}


class Machine(SimulatedRunner):
    """Containers that use half a core since the start of the test, or since their own start."""

    def __init__(self) -> None:
        super().__init__()
        self.questions = 0
        self.began: dict[int, float] = {}

    async def read_usage(self, pids: Collection[int]) -> Mapping[int, ResourceUsage]:
        self.questions += 1
        now = asyncio.get_running_loop().time()
        return {pid: ResourceUsage((now - self.began.get(pid, 0.0)) / 2, 4096) for pid in pids}


async def test_first_measurement_waits_and_later_ones_do_not() -> None:
    machine = Machine()
    meter = ContainerStats(machine, VirtualClock())
    first = await meter.measure(lambda: ONE)
    assert (first.seconds, first.loads[UID("a")]["main"]) == (1.0, (0.5, 4096))
    await asyncio.sleep(15)
    second = await meter.measure(lambda: ONE)
    assert (second.seconds, machine.questions) == (16.0, 3)
    await asyncio.sleep(600)
    third = await meter.measure(lambda: ONE)
    assert (third.seconds, third.loads[UID("a")]["main"].cores) == (1.0, 0.5)


async def test_new_containers_are_measured_by_the_next_request() -> None:
    machine = Machine()
    meter = ContainerStats(machine, VirtualClock())
    await meter.measure(lambda: ONE)
    await asyncio.sleep(5)
    both = {**ONE, 2: (UID("b"), "main")}
    assert set((await meter.measure(lambda: both)).loads) == {UID("a")}
    await asyncio.sleep(5)
    measured = await meter.measure(lambda: both)
    assert {uid: own["main"].cores for uid, own in measured.loads.items()} == {UID("a"): 0.5, UID("b"): 0.5}
    assert machine.questions == 4


async def test_request_waits_if_all_containers_are_new() -> None:
    """CPU time is not lost if no process runs, and PIDs can be reused."""
    meter = ContainerStats(Machine(), VirtualClock())
    assert (await meter.measure(dict)).loads == {}
    measured = await meter.measure(lambda: ONE)
    assert (measured.seconds, set(measured.loads)) == (1.0, {UID("a")})
    await asyncio.sleep(5)
    assert set((await meter.measure(lambda: {1: (UID("b"), "main")})).loads) == {UID("b")}


async def test_concurrent_measurements_share_a_reading() -> None:
    machine = Machine()
    meter = ContainerStats(machine, VirtualClock())
    both = await asyncio.gather(meter.measure(lambda: ONE), meter.measure(lambda: ONE))
    assert [one.seconds for one in both] == [1.0, 1.0]
    assert machine.questions == 3
