"""Tests `spec.scheduling` with kube-scheduler. Groups start completely or not at all, and all objects are deleted."""

import asyncio
import os
from collections import Counter
from collections.abc import Collection, Iterable
from functools import partial
from typing import Any, Final

import pytest
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.pools import add_to_pool, half_a_node, is_bound
from tests.integration.clusters.space import Expectation, LiveScenario
from tests.integration.clusters.state import State, conditions, is_ready
from tests.scheduled import link_of

from kuberuntime.errors import NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS, Resource
from leaderworkerset.api import labels
from leaderworkerset.core.gang.native import POD_GROUPS, WORKLOADS

WHOLE: Final[JSONObject] = {"schedulingPolicy": {"gang": {}}}
DELEGATED: Final = {labels.GROUP_TEMPLATE_NAME: "stage"}
CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")
IDENTITIES: Final = ("Ordinal", "Hash")

SETS: Final = int(os.environ.get("SETS", "1"))
"""LeaderWorkerSets with each identity type that share too few nodes."""

FEW: Final = 4 * SETS
"""The number of nodes. Each node runs two pods, so one third of the groups fits."""

SIZE: Final = 3
"""The number of pods in each group."""

GRACE: Final = int(os.environ.get("GRACE", "3"))
"""The time in seconds that these pods need to terminate."""

PATIENCE: Final = 120.0
"""The timeout in seconds until all groups are ready on a busy machine."""


@pytest.fixture(autouse=True)
def _served(space: LiveScenario, runner: asyncio.Runner) -> None:
    if not runner.run(is_served(space)):
        pytest.skip("scheduling.k8s.io/v1beta1 is not served here")


async def is_served(space: LiveScenario) -> bool:
    try:
        await space.client.list(WORKLOADS, namespace=space.namespace)
    except NotFoundError:
        return False
    return True


async def pod_groups(space: LiveScenario) -> dict[str, JSONObject]:
    """Return the PodGroups in the namespace by name."""
    found = await space.client.list(POD_GROUPS, namespace=space.namespace)
    return {meta.name(one): one for one in found.items}


def placed(state: State) -> dict[str, int]:
    """Return the number of scheduled pods of each group, by group label."""
    counts: dict[str, int] = {}
    for pod in state.of("web").values():
        group = meta.labels(pod)[labels.GROUP_INDEX]
        counts[group] = counts.get(group, 0) + is_bound(pod)
    return counts


def all_ready(state: State, pods: int, image: str = "app:1") -> None:
    """Return whether `count` pods have this image, and all of them are ready."""
    found = state.of("web").values()
    assert [is_ready(pod) for pod in found] == [True] * pods
    assert {meta.spec(pod)["containers"][0]["image"] for pod in found} == {image}


async def no_other_pod_groups(space: LiveScenario) -> dict[str, JSONObject]:
    """Wait until the existing PodGroups are exactly the PodGroups to which pods refer."""
    expected = {link_of(pod) for pod in space.state.of("web").values()}
    return await space.eventually(lambda: pod_groups(space), lambda found: found.keys() == expected)


async def until_gone(space: LiveScenario) -> None:
    """Delete the LeaderWorkerSet, and wait until no object remains."""
    await space.delete("web")

    def is_empty(state: State) -> None:
        assert not state.pods

    await space.until(is_empty)
    for kind in (POD_GROUPS, WORKLOADS):
        read = partial(space.client.list, kind, namespace=space.namespace)
        await space.eventually(read, lambda found: not found.items)


def scheduled(space: LiveScenario, scheduling: JSONObject, identity: str = "Ordinal", **fields: Any) -> JSONObject:
    """Return a LeaderWorkerSet. Two of its pods fill a node in the test's pool."""
    template = fields.pop("template", {}) | {"workerTemplate": half_a_node(space)}
    return lws(template=template, scheduling=scheduling, groupIdentity=identity, **fields)


async def run_another_pod(space: LiveScenario) -> None:
    """Wait for a later, unrelated event, which is the scheduling of a pod outside the groups.

    Then delete that pod.
    """
    own = {"apiVersion": PODS.api_version, "kind": PODS.kind, "metadata": {"name": "other"}}
    await space.create(own | {"spec": pod_template()["spec"]}, PODS)

    def is_placed(state: State) -> None:
        assert is_bound(state.pods["other"])

    def is_gone(state: State) -> None:
        assert "other" not in state.pods

    await space.until(is_placed)
    await space.delete("other", PODS)
    await space.until(is_gone)


@pytest.mark.parametrize("identity", IDENTITIES)
async def test_replicas_start_together_or_not_at_all(space: LiveScenario, identity: str) -> None:
    """Of three groups of four pods on nodes for two groups, two groups start.

    After capacity is added, the third one starts (N-K8S-1, N-K8S-4, N-K8S-5).
    """
    await add_to_pool(space, range(4))
    await space.create(scheduled(space, {}, identity, replicas=3, size=4))

    def two_run(state: State) -> None:
        assert len(state.of("web")) == 12
        assert sorted(placed(state).values()) == [0, 4, 4]

    await space.until(two_run)
    found = await no_other_pod_groups(space)
    assert len(found) == 3
    for pod in space.state.of("web").values():
        own = meta.labels(found[link_of(pod)])
        assert own[labels.GROUP_INDEX] == meta.labels(pod)[labels.GROUP_INDEX]
    await run_another_pod(space)
    two_run(space.state)

    await add_to_pool(space, range(4, 6))

    await space.until(lambda state: all_ready(state, 12))
    assert sorted(placed(space.state).values()) == [4, 4, 4]
    await until_gone(space)


@pytest.mark.parametrize("identity", IDENTITIES)
async def test_whole_set_starts_together_or_not_at_all(space: LiveScenario, identity: str) -> None:
    """The LeaderWorkerSet has two groups of three pods on nodes for four pods.

    It is scaled to zero and up again (N-K8S-8, N-API-15).
    """
    await add_to_pool(space, range(2))
    await space.create(scheduled(space, WHOLE, identity))

    def none_runs(state: State) -> None:
        assert len(state.of("web")) == 6
        assert set(placed(state).values()) == {0}

    await space.until(none_runs)
    await run_another_pod(space)
    none_runs(space.state)

    await add_to_pool(space, range(2, 3))
    await space.until(lambda state: all_ready(state, 6))
    (group,) = (await no_other_pod_groups(space)).values()
    assert meta.labels(group)[labels.SCHEDULING_LEVEL] == "lws"
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 6}}

    await space.edit(replicas=0)
    await space.eventually(lambda: pod_groups(space), lambda found: not found)
    await space.edit(replicas=1)
    await space.until(lambda state: all_ready(state, 3))
    (again,) = (await no_other_pod_groups(space)).values()
    assert meta.name(again) == meta.name(group)
    assert again["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
    await until_gone(space)


@pytest.mark.parametrize("identity", IDENTITIES)
async def test_workers_start_together_after_their_leader(space: LiveScenario, identity: str) -> None:
    """A group of five on nodes for four pods has a leader but none of its four workers (N-API-14, N-K8S-4)."""
    await add_to_pool(space, range(2))
    roles = {"replica": {"leader": {}, "worker": WHOLE}}
    await space.create(scheduled(space, roles, identity, replicas=1, size=5))

    def leader_runs(state: State) -> None:
        assert {meta.labels(pod)[labels.WORKER_INDEX] for pod in state.of("web").values() if is_bound(pod)} == {"0"}
        assert len(state.of("web")) == 5

    await space.until(leader_runs)
    found = await no_other_pod_groups(space)
    assert sorted(meta.labels(one)[labels.ROLE] for one in found.values()) == ["leader", "worker"]
    await run_another_pod(space)
    leader_runs(space.state)

    await add_to_pool(space, range(2, 3))
    await space.until(lambda state: all_ready(state, 5))
    await until_gone(space)


def are_ready(names: Iterable[str], groups: int, image: str, gone: Collection[str] = ()) -> Expectation:
    """Return a condition. Each set must have this number of ready groups with the image and without these leaders."""

    def expectation(state: State) -> None:
        for name in names:
            found = state.of(name).values()
            assert [is_ready(pod) for pod in found] == [True] * groups * SIZE
            assert {meta.spec(pod)["containers"][0]["image"] for pod in found} == {image}
            assert not {meta.uid(pod) for pod in found} & set(gone)

    return expectation


async def replace_groups(space: LiveScenario, name: str, count: int) -> list[str]:
    """Delete `count` leaders in the background. Return their UIDs."""
    pods = space.state.of(name).items()
    leaders = [(one, meta.uid(pod)) for one, pod in pods if meta.labels(pod)[labels.WORKER_INDEX] == "0"][:count]
    for one, _ in leaders:
        await space.delete(one, PODS, propagation="Background")
    return [uid for _, uid in leaders]


async def test_many_sets_share_few_nodes_and_leave_no_pod_group(space: LiveScenario) -> None:
    """LeaderWorkerSets with four groups of three pods share nodes for one third of them.

    Groups start completely or not at all (N-AT-6).

    Then nodes are added. Six groups of each set are replaced, their leaders in the background, and their workers end late;
    then all sets are scaled, and rolled out. Afterwards there are as many PodGroups as groups, and none at the end. `SETS=4
    GRACE=20` plays it with eight sets, and with the 20 s of the scenario.
    """
    names = [f"web-{identity.lower()}-{number}" for identity in IDENTITIES for number in range(SETS)]
    await add_to_pool(space, range(FEW))
    template = half_a_node(space)
    template["spec"]["terminationGracePeriodSeconds"] = GRACE
    for name in names:
        fields: dict[str, Any] = {"groupIdentity": name.split("-")[1].title(), "rollout": {"maxUnavailable": 4}}
        await space.create(
            lws(name, scheduling={}, replicas=4, size=SIZE, template={"workerTemplate": template}, **fields)
        )

    def is_full(state: State) -> None:
        assert len(state.pods) == len(names) * 4 * SIZE
        bound = Counter(link_of(pod) for pod in state.pods.values() if is_bound(pod))
        assert list(bound.values()) == [SIZE] * (FEW * 2 // SIZE)

    await space.until(is_full, limit=PATIENCE)
    await run_another_pod(space)
    is_full(space.state)

    await add_to_pool(space, range(FEW, len(names) * 4 * SIZE // 2))
    await space.until(are_ready(names, 4, "app:1"), limit=PATIENCE)
    for count in (4, 2):
        replaced = [uid for name in names for uid in await replace_groups(space, name, count)]
        await space.until(are_ready(names, 4, "app:1", replaced), limit=PATIENCE)
    for replicas in (2, 4):
        for name in names:
            await space.edit(name, replicas=replicas)
        await space.until(are_ready(names, replicas, "app:1"), limit=PATIENCE)
    newer = half_a_node(space, "app:2")
    newer["spec"]["terminationGracePeriodSeconds"] = GRACE
    for name in names:
        await space.replace_worker_template(newer, name)
    await space.until(are_ready(names, 4, "app:2"), limit=PATIENCE)

    expected = {link_of(pod) for pod in space.state.pods.values()}
    assert len(expected) == len(names) * 4
    await space.eventually(lambda: pod_groups(space), lambda found: found.keys() == expected)
    for name in names:
        assert conditions(space.state.leaderworkersets[name])["WorkloadSchedulingCreated"] == "True"
        await space.delete(name)
    for kind in (POD_GROUPS, WORKLOADS):
        read = partial(space.client.list, kind, namespace=space.namespace)
        await space.eventually(read, lambda found: not found.items)


@pytest.mark.parametrize("sizes", [(2, 4), (4, 2)])
async def test_changed_size_rolls_out_in_a_gang_of_the_whole_set(space: LiveScenario, sizes: tuple[int, int]) -> None:
    """The minimum never exceeds the number of existing pods, so the rollout completes (N-AT-10)."""
    await space.bring_up(lws(scheduling=WHOLE, replicas=3, size=sizes[0]))

    await space.edit_template(size=sizes[1], workerTemplate=pod_template("app:2"))

    await space.settled()
    (group,) = (await pod_groups(space)).values()
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3 * sizes[1]}}
    await until_gone(space)


@pytest.mark.parametrize("scheduling", [{}, {"replica": {"leader": {}, "worker": WHOLE}}], ids=["replica", "role"])
async def test_groups_of_an_old_size_are_kept_in_a_slow_rollout(space: LiveScenario, scheduling: JSONObject) -> None:
    """During the rollout, one group is recreated with its own PodGroup and workers, without drift (N-AT-25)."""
    await space.create(lws(scheduling=scheduling, replicas=2, size=2, rollout={"partition": 1}))
    await space.until(lambda state: all_ready(state, 4))
    await space.edit_template(size=3, workerTemplate=pod_template("app:2"))

    def one_is_new(state: State) -> None:
        assert [len(state.group("web", index)) for index in range(2)] == [2, 3]
        assert all(map(is_ready, state.of("web").values()))

    await space.until(one_is_new)
    before = space.state.uids("web")
    await space.delete("web-0", PODS)

    def is_recreated(state: State) -> None:
        one_is_new(state)
        assert state.uids("web")["web-0"] != before["web-0"]

    await space.until(is_recreated)
    assert not space.state.notes("PodGroupCreateFailed")
    assert len(await no_other_pod_groups(space)) == len({link_of(pod) for pod in space.state.of("web").values()})
    await until_gone(space)


async def test_group_below_the_partition_recreates_its_pod_group(space: LiveScenario) -> None:
    """A group that is scaled down and up has the old revision, whose PodGroup was deleted (N-AT-11)."""
    await space.create(lws(scheduling={}, replicas=3, size=2, rollout={"partition": 2}))
    await space.until(lambda state: all_ready(state, 6))
    await space.replace_worker_template(pod_template("app:2"))
    for replicas in (1, 2):
        await space.edit(replicas=replicas)

        def is_scaled(state: State, count: int = replicas * 2) -> None:
            assert len(state.of("web")) == count
            assert all(map(is_ready, state.of("web").values()))

        await space.until(is_scaled)
        assert len(await no_other_pod_groups(space)) == replicas
    await until_gone(space)


async def owned_by_a_pipeline(space: LiveScenario, name: str, scheduling: JSONObject) -> JSONObject:
    """Create an owner. Return a LeaderWorkerSet whose scheduling is delegated to the owner's Workload."""
    own = {"apiVersion": CONFIG_MAPS.api_version, "kind": CONFIG_MAPS.kind, "metadata": {"name": name}}
    owner = meta.controller_reference(await space.create(own, CONFIG_MAPS))
    made = lws(annotations=DELEGATED, scheduling=scheduling)
    return made | {"metadata": made["metadata"] | {"ownerReferences": [{**owner, "blockOwnerDeletion": False}]}}


@pytest.mark.parametrize(("scheduling", "groups"), [(WHOLE, 1), ({}, 2)], ids=["whole", "replica"])
async def test_scheduling_is_delegated_to_the_workload_of_an_owner(
    space: LiveScenario, scheduling: JSONObject, groups: int
) -> None:
    """The LeaderWorkerSet waits for the Workload of its owner, and does not create a Workload (N-K8S-16)."""
    made = await owned_by_a_pipeline(space, "pipeline", scheduling)
    await space.create(made)

    def waits(state: State) -> None:
        (told,) = meta.status(state.leaderworkersets["web"])["conditions"]
        assert (told["status"], told["reason"]) == ("False", "ParentWorkloadNotReady")
        assert not state.statefulsets

    await space.until(waits)
    workload = {
        "apiVersion": WORKLOADS.api_version,
        "kind": WORKLOADS.kind,
        "metadata": {"name": "pipeline", "ownerReferences": made["metadata"]["ownerReferences"]},
        "spec": {
            "controllerRef": {"apiGroup": "", "kind": CONFIG_MAPS.kind, "name": "pipeline"},
            "podGroupTemplates": [{"name": "stage", "schedulingPolicy": {"gang": {"minCount": 3}}}],
        },
    }
    await space.create(workload, WORKLOADS)

    await space.settled()
    found = await no_other_pod_groups(space)
    assert len(found) == groups
    reference = {"workloadName": "pipeline", "templateName": "stage"}
    assert [one["spec"]["workloadRef"] for one in found.values()] == [reference] * groups
    assert len((await space.client.list(WORKLOADS, namespace=space.namespace)).items) == 1


async def test_unreadable_owner_blocks_only_its_own_set(space: LiveScenario) -> None:
    """The condition reports the error, and reconciliation of other LeaderWorkerSets continues (N-AT-15)."""
    made = await owned_by_a_pipeline(space, "pipeline", WHOLE)
    parent = {labels.PARENT_COMPOSITE_POD_GROUP: "composite"}
    annotations = made["metadata"]["annotations"] | parent
    await space.create(made | {"metadata": made["metadata"] | {"annotations": annotations}})
    await space.create(lws("other", scheduling={}))

    await space.settled("other")

    def is_told(state: State) -> None:
        (told,) = meta.status(state.leaderworkersets["web"])["conditions"]
        assert told["message"].startswith("cannot read an owner: configmaps")
        assert state.notes("ParentWorkloadNotReady")

    await space.until(is_told)


async def test_recreated_group_does_not_wait_for_its_old_pod_group(space: LiveScenario) -> None:
    """The group waits only for its pods.

    A finalizer delays the deletion of the old PodGroup until after them (N-AT-12, N-GATE-10).
    """
    slow = pod_template(terminationGracePeriodSeconds=5)
    await space.create(lws(scheduling={}, replicas=1, size=2, template={"workerTemplate": slow}))
    await space.until(lambda state: all_ready(state, 2))
    before, leader = link_of(space.state.pods["web-0"]), meta.uid(space.state.pods["web-0"])

    await space.delete("web-0", PODS, propagation="Background")

    def is_recreated(state: State) -> None:
        all_ready(state, 2)
        assert meta.uid(state.pods["web-0"]) != leader

    await space.until(is_recreated)
    assert link_of(space.state.pods["web-0"]) != before
    await no_other_pod_groups(space)
    await until_gone(space)
