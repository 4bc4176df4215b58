"""Tests that large permitted numbers have no cost. Two thousand million groups or pods are never listed."""

import gc
import tracemalloc
from functools import partial

import msgspec
import pytest
from testkit import virtualtime
from tests import builders
from tests.property.growth.recipes import RECIPES, or_denied
from tests.property.growth.shapes import TPU, LargeSet
from tests.unit.leaderworkerset.controllers.cluster import NAMESPACE, NodelessCluster

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS, STATEFULSETS
from leaderworkerset.api import labels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSetSpec
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core.leaderworkerset import budget, rollingupdate
from leaderworkerset.core.leaderworkerset.groupindex import GroupState, States
from leaderworkerset.core.leaderworkerset.outdatedleaders import StatefulSetProgress
from leaderworkerset.core.leaderworkerset.rollingupdate import RolloutCase, RolloutStep
from leaderworkerset.core.policies import accelerators

LARGEST = 2**31 - 1
MOST_GROUPS = 1_000_000
"""The maximum of `replicas` in the CRD, which has no limit for `size`."""

MOST_MEMORY = 4 * 2**20
"""The limit in bytes, which a list of a million elements would exceed."""

READY, OUTDATED = GroupState(is_ready=True, is_updated=True), GroupState(is_ready=True, is_updated=False)


class Numerous(LargeSet):
    """A LeaderWorkerSet with the maximum numbers, of which only two groups exist."""

    @property
    def posted(self) -> JSONObject:
        found: JSONObject = msgspec.json.decode(msgspec.json.encode(super().posted))
        spec = found["spec"]
        spec["replicas"] = LARGEST
        spec["leaderWorkerTemplate"]["size"] = LARGEST
        spec["rolloutStrategy"]["rollingUpdateConfiguration"] = {"maxSurge": "100%", "maxUnavailable": "50%"}
        return found


@pytest.mark.parametrize("name", RECIPES)
def test_largest_numbers_take_little_memory(name: str) -> None:
    world = Numerous("accelerators", 2)
    call = partial(RECIPES[name], world)
    call()  # the first call creates the objects

    tracemalloc.start()
    try:
        call()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < MOST_MEMORY


def spec(replicas: int, partition: int = 0) -> LeaderWorkerSetSpec:
    config = {"partition": partition, "maxUnavailable": "25%"}
    rollout_strategy = {"rollingUpdateConfiguration": config}
    return msgspec.convert({"replicas": replicas, "rolloutStrategy": rollout_strategy}, LeaderWorkerSetSpec)


def test_rollout_of_the_largest_number_counts_missing_groups() -> None:
    """The missing groups are counted, but not listed. Two groups exist (R-ROLL-5, R-ROLL-6)."""
    limits = budget.read(spec(LARGEST))
    current = StatefulSetProgress(LARGEST, LARGEST, str(LARGEST))
    states = States.from_states({0: OUTDATED, 2 * MOST_GROUPS - 1: READY})

    step = rollingupdate.next_step(limits, current, states)

    assert rollingupdate.count_unready(states, LARGEST) == LARGEST - 1
    assert step == RolloutStep(RolloutCase.ROLLING, LARGEST - LARGEST // 4, LARGEST)


def test_partition_near_the_largest_number_is_followed() -> None:
    limits = budget.read(spec(LARGEST, partition=LARGEST - 2))

    step = rollingupdate.next_step(
        limits, StatefulSetProgress(LARGEST, LARGEST, str(LARGEST)), States.from_states({2 * MOST_GROUPS - 1: OUTDATED})
    )

    assert step.partition == LARGEST - 2


@pytest.mark.parametrize("subgroup", [None, LARGEST])
def test_pod_with_too_large_variables_is_denied(subgroup: int | None) -> None:
    """The Go controller lists all hosts, and runs out of memory (R-TPU-3, R-TPU-5)."""
    given = {labels.SUBGROUP_SIZE: str(subgroup)} if subgroup else {}
    pod = {
        "metadata": {
            "name": "web-0-1",
            "namespace": NAMESPACE,
            "labels": {labels.WORKER_INDEX: "1", labels.SUBGROUP_INDEX: "0"},
            "annotations": given,
        },
        "spec": {"subdomain": "web", "containers": [{"name": "main", "resources": {"limits": {TPU: "4"}}}]},
    }

    denied = or_denied(partial(accelerators.inject, pod, size=LARGEST, is_leader=False))

    assert isinstance(denied, str)
    assert denied.startswith(
        "pod web-0-1: TPU_WORKER_HOSTNAMES and TPU_PROCESS_ADDRESSES would exceed 3145728 bytes for 21474836"
    )
    assert denied.endswith("Reduce the size, the subgroups, or the containers with google.com/tpu")


async def manage_the_largest() -> tuple[JSONObject, JSONObject]:
    """Run the manager with a LeaderWorkerSet of the maximum size, change its template, and return the results.

    They are the status and the set.
    """
    cluster = NodelessCluster()
    await cluster.server.start()
    async with cluster.managed():
        await cluster.create(builders.leaderworkerset_object(replicas=MOST_GROUPS, size=LARGEST))
        await cluster.settle()
        await create_leader(cluster, 0)
        await create_leader(cluster, MOST_GROUPS - 1)
        await cluster.settle()
        template = {"workerTemplate": builders.pod_template("app:2")}
        await cluster.edit(leaderWorkerTemplate=template)
        await cluster.settle()
        await observe(cluster)
        await cluster.settle()
    found = await cluster.get(LEADERWORKERSETS, "web"), await cluster.get(STATEFULSETS, "web")
    await cluster.server.close()
    return found


async def observe(cluster: NodelessCluster) -> None:
    """Report that the StatefulSet controller has observed the leader StatefulSet."""
    statefulset = await cluster.get(STATEFULSETS, "web")
    patch = {"status": {"observedGeneration": meta.generation(statefulset)}}
    await cluster.client.patch(STATEFULSETS, meta.key(statefulset), patch, kind="merge", subresource="status")


async def create_leader(cluster: NodelessCluster, index: int) -> None:
    statefulset = await cluster.get(STATEFULSETS, "web")
    template = meta.spec(statefulset)["template"]
    metadata = template["metadata"] | {
        "name": f"web-{index}",
        "namespace": NAMESPACE,
        "ownerReferences": [meta.controller_reference(statefulset)],
    }
    await cluster.client.create(
        PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    )


def test_manager_takes_little_memory_for_the_largest_numbers() -> None:
    tracemalloc.start()
    try:
        lws, statefulset = virtualtime.run(manage_the_largest())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert meta.spec(statefulset)["replicas"] == MOST_GROUPS
    assert meta.spec(statefulset)["updateStrategy"]["rollingUpdate"]["partition"] == MOST_GROUPS - 1
    assert meta.status(lws)["observedGeneration"] == 2
    assert meta.is_condition_true(lws, "Progressing")
    assert peak < 2 * MOST_MEMORY


FORGED = 300
"""The number of leaders that a user creates manually.

In earlier versions, one such leader used one bit of memory for each of a million groups.
"""


async def manage_forged(existing: bool) -> int:
    """Run the manager while a user creates false leaders with the highest indexes.

    Return their memory use in bytes.
    """
    cluster = NodelessCluster()
    await cluster.server.start()
    async with cluster.managed():
        if existing:
            for number in range(FORGED // 10):
                await cluster.create(renamed(builders.leaderworkerset_object(replicas=0), f"s{number}"))
        await cluster.settle()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for number in range(FORGED):
            await cluster.client.create(
                PODS, forged(f"s{number % (FORGED // 10)}" if existing else f"s{number}", number)
            )
        await cluster.settle()
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0] - before
    await cluster.server.close()
    return taken


def renamed(lws: JSONObject, name: str) -> JSONObject:
    return lws | {"metadata": lws["metadata"] | {"name": name}}


def forged(lws: str, number: int) -> JSONObject:
    """Return a gated pod with the labels of a leader but without a controller."""
    index = str(2 * MOST_GROUPS - 1 - number)
    own = {labels.NAME: lws, labels.WORKER_INDEX: "0", labels.GROUP_INDEX: index, labels.GROUP_KEY: f"key-{number}"}
    own[labels.TEMPLATE_REVISION_HASH] = f"revision-{number}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{lws}-{index}",
            "namespace": NAMESPACE,
            "labels": own,
            "annotations": {labels.SIZE: "1"},
        },
        "spec": {"containers": [{"name": "c", "image": "i"}], "schedulingGates": [{"name": "example.com/held"}]},
    }


@pytest.mark.parametrize("existing", [False, True], ids=["of no LeaderWorkerSet", "of existing ones"])
def test_forged_leaders_take_bounded_memory(*, existing: bool) -> None:
    """Server and manager share the process, so each pod is in memory several times and uses a few KiB per copy."""
    tracemalloc.start()
    try:
        taken = virtualtime.run(manage_forged(existing))
    finally:
        tracemalloc.stop()

    assert taken < FORGED * 16 * 1024
