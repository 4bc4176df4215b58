"""Tests races and write storms in which group controllers have failed, with one scenario for each.

A seed decides the order. Pods are counted when the API server commits them, regardless of who created them.
"""

import asyncio
from collections import Counter
from contextlib import suppress
from typing import Final

import pytest
from tests.simulation.cluster import NAMESPACE, SimulatedCluster, simulate
from tests.simulation.faults import Schedule
from tests.simulation.leaders import SEEDS, images, played, roll, settings, watch
from tests.simulation.workloads import SLOW, groups, template

from kuberuntime.errors import ConflictError, NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, PODS, STATEFULSETS
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.capabilities.backoff.backoffsettings import DEFAULTS
from leaderworkerset.core.policies.recreation import RestartSettings
from localkube.kubelet.processes.runner import ContainerSpec, Exit
from localkube.kubelet.processes.simulatedrunner import Program

LAGGING: Final = Schedule(latency=(0.5, 1.5))
"""A manager with delayed watch events and delayed writes."""


def is_successor(pod: JSONObject, before: dict[str, str]) -> bool:
    return meta.name(pod) == "web-0-1" and meta.uid(pod) != before["web-0-1"]


@pytest.mark.parametrize("seed", SEEDS)
@played(manager=LAGGING)
async def test_group_is_recreated_when_its_worker_was_replaced_first(world: SimulatedCluster, seed: int) -> None:
    """The manager observes the deletion after the new worker was created (R-POD-11)."""
    await world.bring_up(groups(replicas=1, size=3))
    before = await world.uids()
    leaders = watch(world)
    await world.client.delete(PODS, ObjectKey(NAMESPACE, "web-0-1"), grace_period=0)
    await world.until_objects(PODS, lambda pods: any(is_successor(pod, before) for pod in pods))
    await world.ready()
    assert leaders.births == {"web-0": 1}
    assert not before.items() & (await world.uids()).items()


@pytest.mark.parametrize("seed", SEEDS)
@played()
async def test_recreated_set_of_the_same_name_adopts_nothing(world: SimulatedCluster, seed: int) -> None:
    """The new set does not adopt objects of the old set. All of them are deleted."""
    old = await world.bring_up(groups(replicas=2, size=2))
    before = set((await world.uids()).values())
    await world.delete()
    new = groups(replicas=2, size=2)
    new["spec"]["leaderWorkerTemplate"]["workerTemplate"] = template("app:2")
    try:
        await world.create(new)
    except ConflictError:
        await world.until_objects(LEADERWORKERSETS, lambda found: not found)
        await world.create(new)
    created = await world.ready()
    assert meta.uid(created) != meta.uid(old)
    assert not before & set((await world.uids()).values())
    assert await images(world) == {"app:2"}
    owners = {owner["uid"] for one in await world.objects(STATEFULSETS) if (owner := meta.controller_of(one))}
    assert meta.uid(old) not in owners
    revisions = await world.objects(CONTROLLER_REVISIONS)
    assert all((meta.controller_of(one) or {}).get("uid") != meta.uid(old) for one in revisions)


@pytest.mark.parametrize("seed", SEEDS)
@played()
async def test_scaling_down_a_failing_set_leaves_no_worker(world: SimulatedCluster, seed: int) -> None:
    await world.bring_up(groups(replicas=3, size=3))
    await world.fail("web-2-1")
    await world.fail("web-1-2")
    await world.edit(replicas=1)
    await world.ready()
    assert set(await world.uids()) == {"web-0", "web-0-1", "web-0-2"}
    assert set(await world.uids(STATEFULSETS)) == {"web", "web-0"}
    left = [name for name in await world.uids(CONTROLLER_REVISIONS) if name.endswith("-recreations")]
    assert left == []


@played()
async def test_workers_without_start_ordinals_lead_no_groups(world: SimulatedCluster) -> None:
    """An API server without support for start ordinals numbers workers from 0 (R-POD-6)."""
    await world.bring_up(groups(replicas=1, size=3))
    unnumbered = {"spec": {"ordinals": {"start": 0}}}
    await world.patch(unnumbered, "web-0", resource=STATEFULSETS)
    await world.until_objects(PODS, lambda pods: any(meta.name(pod) == "web-0-0" for pod in pods))
    await world.at_rest()
    assert set(await world.uids(STATEFULSETS)) == {"web", "web-0"}


def slow_workers(spec: ContainerSpec) -> Program:
    return Program(term=0.0 if spec.env[labels.ENV_WORKER_INDEX] == "0" else 20.0)


@pytest.mark.parametrize("seed", SEEDS)
@played(script=slow_workers)
async def test_terminating_workers_do_not_delete_the_new_leader(world: SimulatedCluster, seed: int) -> None:
    """The workers belong to the previous leader (R-POD-8, R-POD-10)."""
    await world.bring_up(groups(replicas=1, size=3))
    leaders = watch(world)
    await world.client.delete(PODS, ObjectKey(NAMESPACE, "web-0"), propagation="Background")
    await world.ready()
    assert leaders.births == {"web-0": 1}
    assert set(await world.uids()) == {"web-0", "web-0-1", "web-0-2"}


@pytest.mark.parametrize("seed", SEEDS)
@played()
async def test_new_size_and_a_failure_result_in_complete_groups(world: SimulatedCluster, seed: int) -> None:
    await world.bring_up(groups(replicas=2, size=2))
    leaders = watch(world)
    await world.fail("web-0-1")
    await world.edit(leaderWorkerTemplate={"size": 3})
    await world.fail("web-1-1")
    await world.ready()
    assert set(await world.uids()) == {f"web-{group}{rank}" for group in (0, 1) for rank in ("", "-1", "-2")}
    assert all(count <= 2 for count in leaders.births.values())


@pytest.mark.parametrize("seed", SEEDS)
@played(manager=LAGGING)
async def test_leaders_without_workers_are_counted_as_ready(world: SimulatedCluster, seed: int) -> None:
    """A group of one pod is ready when its leader is ready, even if the caches are delayed (R-STAT-6)."""
    leaders = watch(world)
    status = meta.status(await world.bring_up(groups(replicas=3, size=1)))
    assert (status["readyReplicas"], status["updatedReplicas"]) == (3, 3)
    await roll(world, "app:2")
    status = meta.status(await world.ready())
    assert (status["readyReplicas"], status["updatedReplicas"]) == (3, 3)
    assert leaders.births == {"web-0": 2, "web-1": 2, "web-2": 2}


def crash_at_once(spec: ContainerSpec) -> Program:
    """Return a simulated process. A worker exits with an error after one second."""
    is_worker = spec.env[labels.ENV_WORKER_INDEX] == "1"
    return Program(exits=(1.0, Exit(1)) if is_worker else None)


@pytest.mark.parametrize(
    ("annotations", "restarts", "seconds", "counts"),
    [
        ({}, DEFAULTS, 90, range(2, 5)),
        ({labels.MAX_GROUP_RESTARTS: "2"}, DEFAULTS, 90, range(2, 3)),
        ({}, RestartSettings(max_restarts=3), 90, range(3, 4)),
        ({}, RestartSettings(has_backoff=False), 30, range(5, 31)),
        ({labels.RESTART_BACKOFF: "on"}, RestartSettings(has_backoff=False), 90, range(2, 5)),
    ],
    ids=["default", "budget", "budget of the manager", "off", "on by annotation"],
)
@played(script=crash_at_once)
async def test_crashing_program_is_restarted_with_backoff(
    world: SimulatedCluster, annotations: dict[str, str], restarts: RestartSettings, seconds: int, counts: range
) -> None:
    """The number of restarts is limited unless backoff is disabled, as in the Go controller."""
    lws = groups(replicas=1, size=2)
    lws["metadata"]["annotations"] = annotations
    leaders = watch(world)
    await world.create(lws)
    await world.until_objects(PODS, lambda pods: len(pods) == 2)
    await asyncio.sleep(seconds)
    assert leaders.births["web-0"] - 1 in counts


def given_up(lws: JSONObject) -> bool:
    return meta.is_condition_true(lws, "Degraded")


@pytest.mark.parametrize("kills", [(), (3.0, 15.0, 40.0)], ids=["one manager", "killed again and again"])
@played(script=crash_at_once)
async def test_group_that_exhausts_its_budget_stays_exhausted(
    world: SimulatedCluster, kills: tuple[float, ...]
) -> None:
    """Every manager enforces the budget. Then there are no writes, and a new value restarts the group."""
    lws = groups(replicas=1, size=2)
    lws["metadata"]["annotations"] = {labels.MAX_GROUP_RESTARTS: "3"}
    leaders = watch(world)
    await world.create(lws)
    await world.until_objects(PODS, lambda pods: len(pods) == 2)
    for pause in kills:
        await asyncio.sleep(pause)
        await world.kill_manager("manager-0")
        world.start_manager("manager-0", SLOW)
    await world.until_objects(LEADERWORKERSETS, lambda found: given_up(found[0]))
    assert leaders.births["web-0"] == 4
    await asyncio.sleep(600)
    assert leaders.births["web-0"] == 4
    resume = {"metadata": {"annotations": {labels.RESUME_GROUP_RESTARTS: "1"}}}
    await world.patch(resume)
    await world.until_objects(LEADERWORKERSETS, lambda found: not given_up(found[0]))
    await world.until_objects(LEADERWORKERSETS, lambda found: given_up(found[0]))
    assert leaders.births["web-0"] == 8


@played()
async def test_pods_deleted_by_others_do_not_increase_the_backoff(world: SimulatedCluster) -> None:
    """A user deletes all pods 22 times in a minute.

    The manager waits only a few seconds, because it rarely recreated the group.
    """
    await world.bring_up(groups(replicas=1, size=2))
    for _ in range(22):
        for pod in sorted(await world.uids(), reverse=True):
            with suppress(NotFoundError):  # it might be deleted with its leader, or not yet recreated
                await world.client.delete(PODS, ObjectKey(NAMESPACE, pod), grace_period=0)
            await asyncio.sleep(0.2)
        await asyncio.sleep(2.3)
    await world.ready()
    records = [one for one in await world.objects(CONTROLLER_REVISIONS) if meta.name(one) == "web-0-recreations"]
    deleted = [one for one in world.trace.of("manager-0") if one.verb == "DELETE" and one.object.endswith("web-0")]
    count = int(meta.annotations(records[0])[labels.RECREATIONS]) if records else 0
    assert count == 0
    assert len(deleted) <= 6, "five at once, and one after the wait"


def test_long_image_download_survives_leader_restarts() -> None:
    """With RecreateGroupAfterStart, failures are not counted while the group has pending pods (R-POD-5.2)."""
    starts: Counter[str] = Counter()

    def downloading(spec: ContainerSpec) -> Program:
        worker = spec.env[labels.ENV_WORKER_INDEX]
        starts[worker] += 1
        if worker != "0":
            return Program(start_delay=600.0)
        return Program(exits=(30.0, Exit(1)) if starts[worker] <= 5 else None)

    async def scenario(world: SimulatedCluster) -> None:
        lws = groups(replicas=1, size=2)
        lws["spec"]["leaderWorkerTemplate"]["restartPolicy"] = "RecreateGroupAfterStart"
        leaders = watch(world)
        await world.create(lws)
        await world.until_objects(PODS, lambda pods: len(pods) == 2)
        first = await world.uids()
        await asyncio.sleep(590)
        assert starts["0"] == 6
        assert await world.uids() == first
        assert leaders.births == {"web-0": 1}

    simulate(scenario, settings(script=downloading))
