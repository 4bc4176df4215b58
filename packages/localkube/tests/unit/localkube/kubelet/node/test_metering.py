"""The load of containers: the readings that it is computed from, and omitted containers."""

import asyncio
from collections.abc import Collection, Mapping

import pytest
from testkit.virtualtime import VirtualClock

from kuberuntime.objects.meta import UID
from localkube.kubelet.node.metering import Meter
from localkube.kubelet.processes.model import ModelRunner
from localkube.kubelet.processes.runner import Used

pytestmark = pytest.mark.virtual_time

ONE = {1: (UID("a"), "main")}


class Machine(ModelRunner):
    """Containers that use half a core from the start of the test, or from their own start."""

    def __init__(self) -> None:
        super().__init__()
        self.questions = 0
        self.began: dict[int, float] = {}

    async def used(self, pids: Collection[int]) -> Mapping[int, Used]:
        self.questions += 1
        now = asyncio.get_running_loop().time()
        return {pid: Used((now - self.began.get(pid, 0.0)) / 2, 4096) for pid in pids}


async def test_first_measurement_waits_and_later_ones_do_not() -> None:
    machine = Machine()
    meter = Meter(machine, VirtualClock())
    first = await meter.measure(lambda: ONE)
    assert (first.seconds, first.loads[UID("a")]["main"]) == (1.0, (0.5, 4096))
    await asyncio.sleep(15)
    second = await meter.measure(lambda: ONE)
    assert (second.seconds, machine.questions) == (16.0, 3)
    await asyncio.sleep(600)
    third = await meter.measure(lambda: ONE)
    assert (third.seconds, third.loads[UID("a")]["main"].cores) == (1.0, 0.5)


async def test_new_containers_are_omitted_from_the_load() -> None:
    meter = Meter(Machine(), VirtualClock())
    await meter.measure(lambda: ONE)
    await asyncio.sleep(5)
    replaced = {1: (UID("b"), "main"), 2: (UID("a"), "other")}
    assert (await meter.measure(lambda: replaced)).loads == {}


async def test_concurrent_measurements_share_a_reading() -> None:
    machine = Machine()
    meter = Meter(machine, VirtualClock())
    both = await asyncio.gather(meter.measure(lambda: ONE), meter.measure(lambda: ONE))
    assert [one.seconds for one in both] == [1.0, 1.0]
    assert machine.questions == 3
