"""Tests that decisions about large objects run outside the event loop."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests import builders
from tests.unit.leaderworkerset.controllers.cluster import NAMESPACE, NodelessCluster

from kuberuntime.clock import SystemClock
from kuberuntime.objects.meta import JSON, JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS
from kuberuntime.plan import Plan
from leaderworkerset.api import labels
from leaderworkerset.controllers import decisioncost, indexes, leaderworkerset, pod
from leaderworkerset.controllers.caches import Caches
from leaderworkerset.controllers.decisioncost import FACT, LIMIT, is_large
from leaderworkerset.core.policies.gang import NO_GANG

KEY = ObjectKey(NAMESPACE, "web")


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        (["x" * (LIMIT - 2)], False),
        (["x" * (LIMIT - 1)], True),
        ([[1] * (LIMIT // 2)], True),
        ([{str(number): 1 for number in range(LIMIT // 8)}], True),
        ([nested(100)], False),
        ([nested(20_000)], True),
        (["x" * (LIMIT // 2 - 2)] * 2, False),
        (["x" * (LIMIT // 2)] * 2, True),
    ],
    ids=["text", "long text", "list", "fields", "deep", "deeper", "two", "two long ones"],
)
def test_documents_are_weighed_together(documents: list[JSON], *, expected: bool) -> None:
    assert is_large(documents) is expected


def test_facts_add_to_the_weight_of_documents() -> None:
    assert not is_large([1], facts=LIMIT // FACT - 1)
    assert is_large([1], facts=LIMIT // FACT)


def test_weighing_stops_at_the_limit() -> None:
    """The first document that is too large is sufficient, because reading all of them would take time."""
    documents = iter([{"a": "x" * LIMIT}, {}, {}])
    assert is_large(documents)
    assert len(list(documents)) <= 1


def lws_with(variables: int) -> JSONObject:
    env = [{"name": f"V{number}", "value": "x"} for number in range(variables)]
    spec = {"containers": [{"name": "main", "image": "app:1", "env": env}]}
    return builders.leaderworkerset_object(template={"workerTemplate": {"metadata": {}, "spec": spec}})


async def turns_during(plan: Callable[[ObjectKey], Awaitable[Plan]], key: ObjectKey) -> tuple[int, Plan]:
    """Return the number of event loop iterations while the plan was made, and the plan."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async with asyncio.TaskGroup() as group:
        counting = group.create_task(count())
        await asyncio.sleep(0)
        before = turns
        made = await plan(key)
        passed = turns - before
        counting.cancel()
    return passed, made


async def drivers_of(variables: int) -> tuple[int, int]:
    """Return the number of event loop iterations during the plans of a LeaderWorkerSet and one of its leaders."""
    cluster = NodelessCluster()
    await cluster.server.start()
    made = await cluster.create(lws_with(variables))
    leader = builders.leader_pod(made, annotations={labels.SIZE: "2"})
    metadata = {name: value for name, value in leader["metadata"].items() if name in {"name", "labels", "annotations"}}
    container = {"name": "main", "image": "app:1"}
    pod_object = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata | {"namespace": NAMESPACE}}
    await cluster.client.create(PODS, pod_object | {"spec": {"containers": [container]}})
    caches = Caches(cluster.client, (*indexes.CACHES, indexes.DEPLOYMENT_CACHE))
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(informer.run()) for informer in caches.all()]
        for informer in caches.all():
            await informer.wait_synced()
        whole, plan = await turns_during(
            leaderworkerset.LeaderWorkerSetDriver(caches, cluster.client, SystemClock(), NO_GANG, {}).plan, KEY
        )
        assert plan.actions
        one, plan = await turns_during(
            pod.PodDriver(caches, cluster.client, SystemClock(), NO_GANG).plan, ObjectKey(NAMESPACE, "web-0")
        )
        assert plan.requeue_after == 1.0
        for task in running:
            task.cancel()
    await cluster.server.close()
    return whole, one


@pytest.mark.slow
def test_loop_continues_while_a_large_object_is_decided() -> None:
    """Tests that decisions for large workloads run in a thread, so that they do not block other workloads."""
    whole, one = asyncio.run(drivers_of(12_000))

    assert whole > 0
    assert one > 0


def test_small_decisions_use_no_thread() -> None:
    """A thread would need more time than the decision."""
    assert asyncio.run(drivers_of(5)) == (0, 0)


def test_cache_of_document_sizes_is_bounded() -> None:
    documents = [{"a": "x" * (LIMIT // 2 + (-9 if index % 2 else 9))} for index in range(10 * decisioncost.MOST)]
    for _ in range(2):
        assert [is_large([one, one]) for one in documents] == [True, False] * (5 * decisioncost.MOST)
    assert len(decisioncost._known) <= decisioncost.MOST
