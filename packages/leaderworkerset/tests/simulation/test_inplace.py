"""Updates in place in a simulated cluster: the pods stay, and the StatefulSet controller deletes none (ADR 24)."""

from tests.simulation.cluster import Settings, SimulatedCluster, count_ready, simulate
from tests.simulation.workloads import SLOW, groups, template

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS, STATEFULSETS
from leaderworkerset.api import labels


def settings(seed: int = 1) -> Settings:
    return Settings(seed=seed, managers=(SLOW,), others=SLOW)


def in_place(how: str = "IfPossible", **fields: int) -> JSONObject:
    lws = groups(**fields)
    lws["metadata"].setdefault("annotations", {})[labels.IN_PLACE] = how
    return lws


def test_new_images_reach_the_same_pods_group_by_group() -> None:
    counts: list[int] = []

    async def scenario(world: SimulatedCluster) -> None:
        await world.bring_up(in_place(replicas=3, size=4))
        before = await world.uids()
        count_ready(world, ("web-0", "web-1", "web-2"), counts)
        await world.edit(leaderWorkerTemplate={"workerTemplate": template("app:2")})
        status = meta.status(await world.ready())
        after = await world.objects(PODS)
        assert {meta.name(pod): meta.uid(pod) for pod in after} == before
        assert {meta.status(pod)["containerStatuses"][0]["image"] for pod in after} == {"app:2"}
        assert {meta.status(pod)["containerStatuses"][0]["restartCount"] for pod in after} == {1}
        assert (status["readyReplicas"], status["updatedReplicas"]) == (3, 3)
        for one in await world.objects(STATEFULSETS):
            assert meta.status(one)["currentRevision"] == meta.status(one)["updateRevision"]
            assert meta.spec(one)["updateStrategy"]["rollingUpdate"]["partition"] == 0
        assert not [entry for entry in world.trace if entry.verb == "DELETE" and "/pods/" in entry.object]

    simulate(scenario, settings())
    assert min(counts) == 2
