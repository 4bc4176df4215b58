"""Tests rollouts and size changes in which group controllers have failed, with one scenario for each."""

import asyncio

import pytest
from tests.simulation.cluster import NAMESPACE, SimulatedCluster
from tests.simulation.leaders import SEEDS, has_updated, images, played, roll, watch
from tests.simulation.workloads import groups, template

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, PODS
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from localkube.kubelet.processes.simulatedrunner import Program


@pytest.mark.parametrize("seed", SEEDS)
@played()
async def test_update_creates_every_leader_once(world: SimulatedCluster, seed: int) -> None:
    """The old workers terminate after their leader, and must not cause deletion of the new leader (R-POD-10)."""
    await world.bring_up(groups(replicas=2, size=2))
    leaders = watch(world)
    await roll(world, "app:2")
    await world.ready()
    assert leaders.births == {"web-0": 1, "web-1": 1}


@pytest.mark.parametrize("seed", SEEDS)
@played()
async def test_surge_groups_stay_until_their_groups_are_ready(world: SimulatedCluster, seed: int) -> None:
    """With maxUnavailable 0, the number of ready groups is never less than `replicas` (R-ROLL-3)."""
    lws = groups(replicas=2, size=2)
    rolling = lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]
    lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"] = rolling | {"maxSurge": 1, "maxUnavailable": 0}
    await world.bring_up(lws)
    leaders = watch(world, ready=2)
    await roll(world, "app:2")
    await world.ready()
    assert leaders.fewest == 2
    assert set(await world.uids()) == {"web-0", "web-0-1", "web-1", "web-1-1"}


@pytest.mark.parametrize("seed", SEEDS)
@played()
async def test_update_during_an_update_reaches_the_newest_revision(world: SimulatedCluster, seed: int) -> None:
    """At most one group is unavailable at a time."""
    await world.bring_up(groups(replicas=3, size=2))
    leaders = watch(world, ready=3)
    await roll(world, "app:2")
    await world.until_objects(PODS, has_updated("app:2"))
    await roll(world, "app:3")
    await world.ready()
    assert await images(world) == {"app:3"}
    assert leaders.fewest == 2
    assert max(leaders.births.values()) <= 2


@pytest.mark.parametrize("seed", SEEDS)
@played()
async def test_rapid_replica_changes_keep_the_remaining_pods(world: SimulatedCluster, seed: int) -> None:
    """Groups that are included in all requested sizes are not changed."""
    await world.bring_up(groups(replicas=2, size=2))
    before = await world.uids()
    for replicas in (4, 2, 3, 5, 2, 4, 3):
        await world.edit(replicas=replicas)
    await world.ready()
    after = await world.uids()
    assert before.items() <= after.items()
    assert {name for name in after if name.count("-") == 1} == {"web-0", "web-1", "web-2"}


@pytest.mark.parametrize("seed", SEEDS)
@played()
async def test_update_proceeds_when_its_percentage_rounds_to_zero(world: SimulatedCluster, seed: int) -> None:
    """An autoscaler writes the scale without validation, and 30 % of 2 is 0 (R-ROLL-1)."""
    lws = groups(replicas=4, size=2)
    lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["maxUnavailable"] = "30%"
    await world.bring_up(lws)
    await roll(world, "app:2")
    await world.until_objects(PODS, has_updated("app:2"))
    scale = {"spec": {"replicas": 2}}
    key = ObjectKey(NAMESPACE, "web")
    await world.client.patch(LEADERWORKERSETS, key, scale, kind="merge", subresource="scale")
    await world.ready()
    assert await images(world) == {"app:2"}
    assert set(await world.uids()) == {"web-0", "web-0-1", "web-1", "web-1-1"}


@pytest.mark.parametrize("seed", SEEDS)
@played()
async def test_groups_of_one_that_grow_are_all_replaced(world: SimulatedCluster, seed: int) -> None:
    """The recreated leader has the previous size, and no group may be replaced without a surge group (Q-12)."""
    limits = {"rollingUpdateConfiguration": {"maxUnavailable": 0, "maxSurge": 1}}
    await world.bring_up(groups(replicas=2, size=1, rolloutStrategy=limits))
    await world.edit(leaderWorkerTemplate={"size": 3})
    await world.delete("web-1", PODS)
    await world.ready()
    assert set(await world.uids()) == {f"web-{group}{rank}" for group in (0, 1) for rank in ("", "-1", "-2")}


def is_live(revision: JSONObject) -> bool:
    """Return whether groups may use a revision of the LeaderWorkerSet.

    Revisions of the history do not have the label.
    """
    owner = meta.controller_of(revision)
    is_own = owner is not None and owner["kind"] == "LeaderWorkerSet"
    return is_own and labels.TEMPLATE_REVISION_HASH in meta.labels(revision)


@pytest.mark.parametrize("seed", SEEDS)
@played()
async def test_reverted_update_leaves_no_revision(world: SimulatedCluster, seed: int) -> None:
    """Groups that the rollout has not reached are not changed."""
    await world.bring_up(groups(replicas=3, size=2))
    before = await world.uids()
    await roll(world, "app:2")
    await world.until_objects(PODS, has_updated("app:2"))
    await roll(world, "app:1")
    await world.ready()
    after = await world.uids()
    assert await images(world) == {"app:1"}
    assert (before["web-0"], before["web-0-1"]) == (after["web-0"], after["web-0-1"])
    assert len([one for one in await world.objects(CONTROLLER_REVISIONS) if is_live(one)]) == 1


@pytest.mark.parametrize("pause", [0.05, 0.5, 2.0])
@played(script=lambda _: Program(term=5.0))
async def test_rollout_completes_when_groups_were_absent_for_a_moment(world: SimulatedCluster, pause: float) -> None:
    """The StatefulSet controller does not observe that there are briefly no groups (R-REV-14).

    The partition then makes it create two groups of the previous template: their revision must still exist, or the next
    update waits forever.
    """
    await world.bring_up(groups(replicas=3, size=2))
    await world.edit(replicas=0, leaderWorkerTemplate={"size": 1, "workerTemplate": template("app:2")})
    await asyncio.sleep(pause)
    await world.edit(replicas=3, rolloutStrategy={"rollingUpdateConfiguration": {"partition": 2}})
    await world.at_rest()
    released = {"rollingUpdateConfiguration": {"partition": 0}}
    await world.edit(rolloutStrategy=released, leaderWorkerTemplate={"size": 1, "workerTemplate": template("app:3")})
    await world.ready()
    assert await images(world) == {"app:3"}


@pytest.mark.parametrize("seed", SEEDS)
@played(script=lambda spec: Program(start_error="no such file" if spec.argv == ("broken",) else ""))
async def test_broken_groups_are_replaced_once_after_a_scale_up(world: SimulatedCluster, seed: int) -> None:
    """Broken groups are not first recreated with the older revision (docs/adr/0030)."""
    await world.bring_up(groups(replicas=3, size=1))
    broken = template("app:2")
    broken["spec"]["containers"][0]["command"] = ["broken"]
    await world.edit(leaderWorkerTemplate={"workerTemplate": broken})
    await world.until_objects(
        PODS, lambda pods: any(meta.spec(pod)["containers"][0]["image"] == "app:2" for pod in pods)
    )
    await world.edit(replicas=5)
    await world.until_objects(PODS, lambda pods: len(pods) == 5)
    leaders = watch(world)
    await roll(world, "app:3")
    await world.ready()
    assert await images(world) == {"app:3"}
    assert leaders.births == {f"web-{index}": 1 for index in range(5)}
