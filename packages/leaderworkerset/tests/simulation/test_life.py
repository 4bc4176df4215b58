"""Tests the lifecycle of a LeaderWorkerSet: creation, rollout, repair, scaling and deletion."""

from tests.simulation.cluster import Settings, SimulatedCluster, simulate, simulated
from tests.simulation.states import differences
from tests.simulation.workloads import SLOW, groups, template

from kuberuntime.objects import meta

NAMES = {f"web-{group}{worker}" for group in range(3) for worker in ("", "-1", "-2", "-3")}


def settings(seed: int = 1) -> Settings:
    return Settings(seed=seed, managers=(SLOW,), others=SLOW)


async def life(world: SimulatedCluster) -> None:
    """Run the complete lifecycle except for the deletion."""
    await world.bring_up(groups(replicas=2, size=2))
    await world.edit(leaderWorkerTemplate={"workerTemplate": template("app:2")})
    await world.ready()
    await world.fail("web-1-1")
    await world.ready()
    await world.edit(replicas=1)
    await world.ready()


@simulated(settings())
async def test_ready_groups_cause_no_further_writes(world: SimulatedCluster) -> None:
    status = meta.status(await world.bring_up(groups(replicas=3, size=4)))
    assert set(await world.uids()) == NAMES
    assert (status["replicas"], status["readyReplicas"], status["updatedReplicas"]) == (3, 3, 3)
    assert len(world.trace.of("manager-0")) <= 14


@simulated(settings())
async def test_failed_worker_recreates_only_its_group_once(world: SimulatedCluster) -> None:
    await world.bring_up(groups(replicas=3, size=4))
    before = await world.uids()
    await world.fail("web-1-2")
    await world.ready()
    after = await world.uids()
    replaced = {name for name in NAMES if before[name] != after[name]}
    assert set(after) == NAMES
    assert replaced == {"web-1", "web-1-1", "web-1-2", "web-1-3"}
    leaders = [entry for entry in world.trace if entry.verb == "DELETE" and entry.object.endswith("/pods/web-1")]
    assert len([entry for entry in leaders if entry.actor == "manager-0"]) == 1


def test_equal_seeds_give_equal_traces_and_all_the_same_end() -> None:
    first, again, other = (simulate(life, settings(seed)) for seed in (7, 7, 8))
    assert first.trace.entries == again.trace.entries
    assert [entry.object for entry in first.trace] != [entry.object for entry in other.trace]
    assert differences(first.state, other.state) == []
