"""Tests how long a group takes to terminate, with its leader or after it."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import pytest
from tests.simulation.cluster import Settings, SimulatedCluster, simulate
from tests.simulation.workloads import groups, template

from kuberuntime.objects import meta
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import labels
from localkube.apiserver.storage.store import Change
from localkube.kubelet.processes.simulatedrunner import Program

GRACE: Final = 30.0

Act: TypeAlias = Callable[[SimulatedCluster], Awaitable[None]]


async def scale(world: SimulatedCluster) -> None:
    await world.edit(replicas=1)


async def roll(world: SimulatedCluster) -> None:
    await world.edit(leaderWorkerTemplate={"workerTemplate": template("app:2")})


async def crash(world: SimulatedCluster) -> None:
    await world.fail("web-1-1")


async def delete(world: SimulatedCluster) -> None:
    await world.delete()


def seconds_of_end(act: Act, *, policy: str = "", field: str = "") -> float:
    """Return the time in seconds until the last pod of group 1 is deleted.

    Its processes only exit when they are killed.
    """
    ended: list[float] = []

    async def scenario(world: SimulatedCluster) -> None:
        lws = groups(replicas=2, size=4)
        if policy:
            lws["metadata"]["annotations"] = {labels.POD_TERMINATION_POLICY: policy}
        if field:
            lws["spec"]["podTerminationPolicy"] = field
        await world.bring_up(lws)
        begin, group = world.clock.monotonic(), {f"web-1{worker}" for worker in ("", "-1", "-2", "-3")}
        before = {uid for name, uid in (await world.uids()).items() if name in group}

        def seen(change: Change) -> None:
            if change.type == "DELETED" and meta.uid(change.object) in before:
                ended.append(world.clock.monotonic() - begin)

        world.observe(PODS, seen)
        await act(world)
        await world.at_rest()

    simulate(scenario, Settings(script=lambda _: Program(term=None)))
    assert len(ended) == 4
    return ended[-1]


@pytest.mark.parametrize("act", [scale, roll, delete])
def test_group_stops_in_one_grace_period_with_parallel_policy(act: Act) -> None:
    """With the parallel policy, a group terminates within one grace period (N-PT-1 to N-PT-3)."""
    assert seconds_of_end(act) == pytest.approx(2 * GRACE, abs=4)
    assert seconds_of_end(act, policy="Parallel") == pytest.approx(GRACE, abs=2)
    assert seconds_of_end(act, field="Parallel") == pytest.approx(GRACE, abs=2)


@pytest.mark.parametrize("act", [scale, delete])
def test_field_counts_before_the_annotation(act: Act) -> None:
    """After the set is deleted, the workers also terminate as the field specifies (N-PT-2, N-PT-3)."""
    assert seconds_of_end(act, policy="Parallel", field="Default") == pytest.approx(2 * GRACE, abs=4)


def test_failed_group_terminates_in_one_grace_period() -> None:
    """The leader is deleted with foreground propagation (R-POD-5)."""
    assert seconds_of_end(crash) == pytest.approx(GRACE, abs=4)
    assert seconds_of_end(crash, policy="Parallel") == pytest.approx(GRACE, abs=4)
