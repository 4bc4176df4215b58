"""Tests gang objects in a simulated cluster, through all changes to groups until their deletion."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from msgspec import structs
from tests.fuzz.seeds import first_tier
from tests.gangdefinitions import COSCHEDULING_DEFINITION, VOLCANO_DEFINITION, kind_of
from tests.simulation.cluster import NAMESPACE, Settings, SimulatedCluster, simulate, simulated
from tests.simulation.faults import Fault, Schedule
from tests.simulation.workloads import SLOW, groups, template

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import labels
from leaderworkerset.api.groupname import is_leader
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core.gang.coscheduling import POD_GROUP
from leaderworkerset.core.gang.gangs import PROVIDERS
from leaderworkerset.core.gang.provider import Provider
from leaderworkerset.core.gang.volcano import GROUP_NAME
from leaderworkerset.kinds.managedkinds import managed_kinds
from localkube.apiserver.storage.store import Change
from localkube.kubelet.processes.runner import ContainerSpec
from localkube.kubelet.processes.simulatedrunner import Program, run_forever

DEFINITIONS = {"volcano": VOLCANO_DEFINITION, "coscheduling": COSCHEDULING_DEFINITION}
SCHEDULERS = [PROVIDERS[name] for name in DEFINITIONS]
VOLCANO = PROVIDERS["volcano"]


def settings(provider: Provider, seed: int = 1) -> Settings:
    """Return a cluster whose manager uses this provider."""
    return Settings(
        seed=seed,
        managers=(SLOW,),
        others=SLOW,
        kinds=managed_kinds(provider.name),
        definitions=(DEFINITIONS[provider.name],),
    )


def link_of(pod: JSONObject) -> str:
    """Return the name of the gang object that a pod references."""
    return meta.annotations(pod).get(GROUP_NAME) or meta.labels(pod).get(POD_GROUP, "")


class Watched:
    """No worker is created before the gang object of its group."""

    def __init__(self, world: SimulatedCluster, provider: Provider) -> None:
        self.known: set[str] = set()
        self.early: list[str] = []
        world.observe(kind_of(provider), self._group_changed)
        world.observe(PODS, self._pod_changed)

    def _group_changed(self, change: Change) -> None:
        (self.known.discard if change.type == "DELETED" else self.known.add)(change.key.name)

    def _pod_changed(self, change: Change) -> None:
        is_worker = meta.labels(change.object).get(labels.WORKER_INDEX) != "0"
        if change.type == "ADDED" and is_worker and link_of(change.object) not in self.known:
            self.early.append(change.key.name)


async def assert_groups(world: SimulatedCluster, provider: Provider, *, replicas: int, minimum: int, size: int) -> None:
    """Check that every group has one gang object, which all its pods reference, and that there are no others."""
    pods = await world.objects(PODS)
    members: dict[str, set[str]] = {}
    for pod in pods:
        members.setdefault(link_of(pod), set()).add(meta.name(pod))
    expected = [{f"web-{index}", *(f"web-{index}-{worker}" for worker in range(1, size))} for index in range(replicas)]
    assert sorted(members.values(), key=sorted) == expected
    found = {meta.name(obj): obj for obj in await world.objects(kind_of(provider))}
    assert found.keys() == members.keys()
    leaders = {link_of(pod): pod for pod in pods if meta.labels(pod)[labels.WORKER_INDEX] == "0"}
    for name, obj in found.items():
        assert meta.spec(obj)["minMember"] == minimum
        assert (meta.controller_of(obj) or {})["uid"] == meta.uid(leaders[name])


@pytest.mark.parametrize("provider", SCHEDULERS, ids=lambda one: one.name)
@pytest.mark.parametrize(("startup", "minimum"), [("LeaderCreated", 3), ("LeaderReady", 1)])
@simulated(settings)
async def test_groups_keep_their_gang_objects_through_all_changes(
    world: SimulatedCluster, startup: str, minimum: int, provider: Provider
) -> None:
    """Groups retain their gang objects through all changes.

    Rules R-GANG-2 to R-GANG-7, R-KQ-110 to R-KQ-113, R-KQ-120, R-KQ-121.
    """
    watched = Watched(world, provider)
    expected = {"minimum": minimum, "size": 3}

    await world.bring_up(groups(replicas=2, size=3, startupPolicy=startup))
    await assert_groups(world, provider, replicas=2, **expected)
    first = await world.uids(kind_of(provider))

    await world.fail("web-1-2")
    await world.ready()
    await assert_groups(world, provider, replicas=2, **expected)
    assert len(first.items() - (await world.uids(kind_of(provider))).items()) == 1

    await world.edit(leaderWorkerTemplate={"workerTemplate": template("app:2")})
    await world.ready()
    await assert_groups(world, provider, replicas=2, **expected)
    rolled = await world.uids(kind_of(provider))
    assert not rolled.keys() & first.keys()

    for replicas in (3, 1):
        await world.edit(replicas=replicas)
        await world.ready()
        await assert_groups(world, provider, replicas=replicas, **expected)
    assert (await world.uids(kind_of(provider))).items() <= rolled.items()

    await world.delete()
    await world.at_rest()
    assert await world.objects(kind_of(provider)) == []
    assert watched.early == []


@pytest.mark.parametrize("identity", first_tier(["Ordinal", "Hash"]))
@pytest.mark.parametrize("provider", SCHEDULERS, ids=lambda one: one.name)
def test_number_of_gang_objects_equals_the_number_of_groups(provider: Provider, identity: str) -> None:
    """Ten groups are replaced, and the set is scaled and updated.

    Leaders terminate first, and workers need 20 seconds.

    Rule N-AT-6.
    """

    def slow(spec: ContainerSpec) -> Program:
        return structs.replace(run_forever(spec), term=0.0 if spec.sandbox_id in leaders else 20.0)

    leaders: set[str] = set()

    def note_leader(change: Change) -> None:
        if is_leader(change.object):
            leaders.add(meta.uid(change.object))

    async def scenario(world: SimulatedCluster) -> None:
        world.observe(PODS, note_leader)
        await world.bring_up(groups(replicas=4, size=3, groupIdentity=identity))
        for count in (4, 4, 2):
            for leader in [pod for pod in await world.objects(PODS) if is_leader(pod)][:count]:
                await world.delete(meta.name(leader), PODS)
            await world.ready()
        for replicas in (2, 4):
            await world.edit(replicas=replicas)
            await world.ready()
        await world.edit(leaderWorkerTemplate={"workerTemplate": template("app:2")})
        await world.ready()

        pods = await world.objects(PODS)
        found = {
            meta.name(one): (meta.controller_of(one) or {})["uid"] for one in await world.objects(kind_of(provider))
        }
        assert found == {link_of(pod): meta.uid(pod) for pod in pods if is_leader(pod)}
        assert len(found) == 4
        assert {link_of(pod) for pod in pods} == found.keys()
        assert len(leaders) >= 4 + 10 + 2 + 4

    simulate(scenario, replace(settings(provider), script=slow))


@simulated(settings(VOLCANO))
async def test_group_of_one_pod_has_a_gang_object(world: SimulatedCluster) -> None:
    """A group with one pod has a gang object (R-GANG-3)."""
    await world.bring_up(groups(replicas=2, size=1))
    await assert_groups(world, VOLCANO, replicas=2, minimum=1, size=1)


@simulated(settings(PROVIDERS["coscheduling"]))
async def test_new_size_creates_new_gang_objects(world: SimulatedCluster) -> None:
    provider = PROVIDERS["coscheduling"]
    await world.bring_up(groups(replicas=2, size=2))
    await world.edit(leaderWorkerTemplate={"size": 4})
    await world.ready()
    await assert_groups(world, provider, replicas=2, minimum=4, size=4)


@simulated(settings(VOLCANO))
async def test_exclusive_group_starts_with_a_minimum_of_its_leader(
    world: SimulatedCluster,
) -> None:
    """If the minimum were all pods, the scheduler and the workers would wait for each other."""
    lws = groups(replicas=1, size=3)
    annotations = {labels.EXCLUSIVE_TOPOLOGY: "kubernetes.io/hostname"}
    await world.bring_up(lws | {"metadata": lws["metadata"] | {"annotations": annotations}})
    await assert_groups(world, VOLCANO, replicas=1, minimum=1, size=3)


@pytest.mark.parametrize("provider", SCHEDULERS, ids=lambda one: one.name)
@simulated(settings)
async def test_deleted_gang_object_is_recreated(world: SimulatedCluster, provider: Provider) -> None:
    await world.bring_up(groups(replicas=1, size=2))
    before = await world.uids(kind_of(provider))
    await world.delete(next(iter(before)), kind_of(provider))
    await world.ready()
    after = await world.uids(kind_of(provider))
    assert after.keys() == before.keys()
    assert after != before
    await assert_groups(world, provider, replicas=1, minimum=2, size=2)


@simulated(replace(settings(VOLCANO), definitions=()))
async def test_gang_scheduler_that_is_installed_later_is_used(world: SimulatedCluster) -> None:
    """A manager that was configured before Volcano was installed continues to use the other schedulers."""
    lws = groups(replicas=1, size=2)
    metadata = lws["metadata"] | {"name": "alone", "annotations": {labels.GANG_SCHEDULER: "none"}}
    await world.create(lws | {"metadata": metadata})
    await world.until_objects(
        PODS, lambda pods: len(pods) == 2 and all(meta.is_condition_true(p, "Ready") for p in pods)
    )
    await world.create(lws)
    await world.until_objects(PODS, lambda pods: len(pods) == 3)
    await world.define(VOLCANO_DEFINITION)
    await world.until_objects(PODS, lambda pods: len(pods) == 4)
    await world.client.delete(LEADERWORKERSETS, ObjectKey(NAMESPACE, "alone"))
    await world.ready()
    await assert_groups(world, VOLCANO, replicas=1, minimum=2, size=2)


def crashing(crash: int) -> Settings:
    """Return a cluster whose manager crashes after a write. The response to the next write is lost."""
    faulty: Mapping[int, Fault] = {crash + 1: Fault.LOST}
    schedule = Schedule(latency=SLOW.latency, faults=faulty, crash_after=crash)
    return replace(settings(VOLCANO, seed=crash), managers=(schedule,))


@pytest.mark.parametrize("crash", [3, 5, 7, 9])
@simulated(crashing)
async def test_gang_objects_are_complete_although_managers_die(world: SimulatedCluster, crash: int) -> None:
    """Objects are not missing, duplicated or orphaned."""
    await world.bring_up(groups(replicas=2, size=2))
    await world.fail("web-0-1")
    await world.ready()
    await assert_groups(world, VOLCANO, replicas=2, minimum=2, size=2)
