"""Tests LeaderWorkerSets with Kueue, based on its page "Run LeaderWorkerSet" and its requirements."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import wraps
from inspect import signature
from typing import Any

import pytest
from tests.kueue.reconciler import HOSTNAME, ROLE, Kueue
from tests.kueue.webhooks import (
    CONFIGURATION,
    FRAMEWORK,
    PARENT,
    PRIORITY,
    QUEUE,
    TOPOLOGY,
    WEBHOOKS,
    build_configurations,
)
from tests.simulation.cluster import NAMESPACE, SimulatedCluster, simulated
from tests.simulation.product import WEBHOOK_HOST
from tests.simulation.test_life import settings
from tests.simulation.workloads import groups, template

from kuberuntime.errors import ForbiddenError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS, STATEFULSETS
from kuberuntime.plan import Propagation
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.webhooks import configurations, review
from leaderworkerset.webhooks.configurations import MUTATING_NAME
from localkube.controllers.nodes.nodes import NodeSettings

Scenario = Callable[..., Coroutine[Any, Any, None]]
KUEUE_PATHS = frozenset(spec.path for spec in WEBHOOKS)


def queued(replicas: int = 2, size: int = 3, **spec: Any) -> JSONObject:
    """Return a queued LeaderWorkerSet."""
    lws = groups(replicas=replicas, size=size, **spec)
    return lws | {"metadata": lws["metadata"] | {"labels": {QUEUE: "team"}}}


def pods_of(pods: list[JSONObject], *indexes: int) -> list[JSONObject]:
    return [pod for pod in pods if meta.labels(pod)[labels.GROUP_INDEX] in map(str, indexes)]


def run(pods: list[JSONObject], *indexes: int, size: int = 3) -> bool:
    """Return whether these groups run, and the gates of all other groups are closed."""
    running = [pod for pod in pods if meta.is_condition_true(pod, "Ready")]
    waiting = [pod for pod in pods if meta.spec(pod).get("schedulingGates")]
    whole = len(pods_of(pods, *indexes)) == len(indexes) * size
    return whole and running == pods_of(pods, *indexes) and len(running) + len(waiting) == len(pods)


@asynccontextmanager
async def kueue(world: SimulatedCluster, quota: int) -> AsyncIterator[Kueue]:
    """Run Kueue for the duration of the `with` block, and check its invariants at the end."""
    decisions = {spec.path: spec.decide for spec in WEBHOOKS}
    world.webhooks.serve(decisions, lambda path, body: review.respond_to_review(body, decisions[path]))
    for resource, obj in build_configurations(configurations.at_url(f"https://{WEBHOOK_HOST}", b"")):
        await world.client.apply(resource, obj, manager="kueue")
    one = Kueue(world.client, NAMESPACE, quota)
    reconciling = asyncio.create_task(one.run())
    yield one
    reconciling.cancel()
    assert one.overfull == []


def under_kueue(quota: int, *, nodes: int = 1) -> Callable[[Scenario], Callable[..., None]]:
    """Convert a coroutine to a test in a cluster with a quota for the given number of groups."""

    def decorate(test: Scenario) -> Callable[..., None]:
        @wraps(test)
        async def body(world: SimulatedCluster, **given: Any) -> None:
            async with kueue(world, quota) as one:
                await test(world, one, **given)

        own = signature(test)
        vars(body)["__signature__"] = own.replace(
            parameters=[own.parameters["world"], *list(own.parameters.values())[2:]]
        )
        return simulated(replace(settings(), nodes=NodeSettings(count=nodes)))(body)

    return decorate


@under_kueue(1)
async def test_pods_have_all_fields_that_kueue_reads(world: SimulatedCluster, one: Kueue) -> None:
    """Kueue reads owners, their labels, indexes, pod roles and marked templates (R-KQ-41 to R-KQ-48)."""
    await world.bring_up(queued(replicas=1))
    sets = {meta.name(one): one for one in await world.objects(STATEFULSETS)}
    for pod in await world.objects(PODS):
        owner = meta.controller_of(pod) or {}
        assert owner["kind"] == "StatefulSet"
        assert meta.labels(sets[owner["name"]])[labels.NAME] == "web"
        worker_index = meta.labels(pod)[labels.WORKER_INDEX]
        assert meta.labels(pod)[labels.GROUP_INDEX] == "0"
        assert (labels.LEADER_NAME in meta.annotations(pod)) == (worker_index != "0")
        assert meta.annotations(pod)[PARENT] == FRAMEWORK
        assert meta.labels(pod)[QUEUE] == "team"
    assert (meta.controller_of(sets["web"]) or {})["kind"] == "LeaderWorkerSet"
    assert (meta.controller_of(sets["web-0"]) or {})["kind"] == "Pod"
    for found in sets.values():
        assert meta.annotations(meta.spec(found)["template"])[PARENT] == FRAMEWORK


@under_kueue(2)
async def test_evicted_group_waits_and_the_status_reports_it(world: SimulatedCluster, one: Kueue) -> None:
    """The group is not recreated, and has the two conditions that Kueue's tests check.

    (R-KQ-49, R-KQ-63, R-KQ-64, R-KQ-71)
    """
    await world.bring_up(queued(replicas=2))
    one.evicted.add(1)
    await world.until_objects(PODS, lambda pods: run(pods, 0) and len(pods_of(pods, 1)) >= 1)
    await asyncio.sleep(60)
    before = await world.uids()
    await asyncio.sleep(300)
    assert await world.uids() == before
    lws = await world.get(LEADERWORKERSETS, "web")
    found = {kind: meta.find_condition(lws, kind) or {} for kind in ("Available", "Progressing")}
    assert (found["Available"]["status"], found["Available"]["reason"]) == ("False", "AllGroupsReady")
    assert (found["Progressing"]["status"], found["Progressing"]["reason"]) == ("True", "GroupsProgressing")
    assert meta.status(lws)["readyReplicas"] == 1
    one.evicted.clear()
    await world.until_objects(PODS, lambda pods: run(pods, 0, 1))
    await world.ready()


@under_kueue(2)
async def test_failed_worker_recreates_its_group_within_admission(world: SimulatedCluster, one: Kueue) -> None:
    """A group never has more pods than members (R-KQ-44, R-KQ-67)."""
    await world.bring_up(queued(replicas=2))
    before = await world.uids()
    await world.fail("web-1-2")
    await world.until_objects(
        PODS, lambda pods: run(pods, 0, 1) and {meta.uid(pod) for pod in pods} != {*before.values()}
    )
    await world.ready()
    after = await world.uids()
    assert {name for name in before if before[name] != after[name]} == {"web-1", "web-1-1", "web-1-2"}


@under_kueue(3)
async def test_surge_groups_are_admitted_during_an_update(world: SimulatedCluster, one: Kueue) -> None:
    """Surge groups are counted in `replicas` until every group is updated (R-KQ-21, R-KQ-62, R-KQ-70)."""
    strategy = {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxSurge": 1, "maxUnavailable": 0}}

    await world.bring_up(queued(replicas=2, size=2, rolloutStrategy=strategy))
    await world.edit(leaderWorkerTemplate={"workerTemplate": template("app:2")})
    await world.until_objects(PODS, lambda pods: len(pods_of(pods, 2)) == 2 and run(pods_of(pods, 2), 2, size=2))
    await world.ready()
    assert {meta.spec(pod)["containers"][0]["image"] for pod in await world.objects(PODS)} == {"app:2"}
    assert one.admitted == {0, 1}


@under_kueue(1)
async def test_leaders_and_workers_have_different_roles(world: SimulatedCluster, one: Kueue) -> None:
    """Leaders and workers have different roles (R-KQ-45)."""
    own = {"size": 3, "leaderTemplate": template(), "workerTemplate": template()}
    lws = queued(replicas=1)
    await world.bring_up(lws | {"spec": lws["spec"] | {"leaderWorkerTemplate": own}})
    roles = {meta.name(pod): meta.annotations(pod).get(ROLE) for pod in await world.objects(PODS)}
    assert roles == {"web-0": "leader", "web-0-1": "worker", "web-0-2": "worker"}


@under_kueue(1)
async def test_nothing_is_recreated_while_kueue_is_down(world: SimulatedCluster, one: Kueue) -> None:
    """In the meantime, Kueue's webhooks reject all requests (R-KQ-72)."""
    await world.bring_up(queued(replicas=1))
    before = await world.uids()
    world.webhooks.refuse(KUEUE_PATHS)
    await world.fail("web-0-1")
    await asyncio.sleep(60)
    assert await world.uids() == {}
    world.webhooks.accept()
    await world.until_objects(PODS, lambda pods: run(pods, 0))
    await world.ready()
    after = await world.uids()
    assert after.keys() == before.keys()
    assert not set(after.values()) & set(before.values())


@pytest.mark.parametrize("startup", ["LeaderCreated", "LeaderReady"])
@under_kueue(2)
async def test_admitted_groups_start_under_both_startup_policies(
    world: SimulatedCluster, one: Kueue, startup: str
) -> None:
    """Admission never waits for pods (R-KQ-21)."""
    await world.create(queued(replicas=2, startupPolicy=startup))
    await world.until_objects(PODS, lambda pods: run(pods, 0, 1))


@under_kueue(2, nodes=4)
async def test_admitted_group_is_placed_by_the_ranks_of_its_pods(world: SimulatedCluster, one: Kueue) -> None:
    """Templates keep the annotation, and ranks are labels.

    No node selector is added (R-KQ-50 to R-KQ-53, R-KQ-56).
    """
    one.domains = [["node-0", "node-1"], ["node-2", "node-3"]]
    lws = queued(replicas=2, size=4)
    worker = lws["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    worker["metadata"] = {"annotations": {TOPOLOGY: "rack"}}
    await world.bring_up(lws)
    found = {meta.name(pod): meta.spec(pod)["nodeName"] for pod in await world.objects(PODS)}
    for group, hosts in enumerate(one.domains):
        ranked = [f"web-{group}", *(f"web-{group}-{rank}" for rank in range(1, 4))]
        assert [found[name] for name in ranked] == [host for host in hosts for _ in range(2)]


@under_kueue(0)
async def test_pods_have_no_fields_that_kueue_adds(world: SimulatedCluster, one: Kueue) -> None:
    """A conflicting value would permanently prevent admission (R-KQ-32, R-KQ-161)."""
    await world.create(queued(replicas=1))
    pods = await world.until_objects(PODS, lambda pods: len(pods) == 3)
    for pod in pods:
        assert not meta.spec(pod).get("nodeSelector")
        added = {"podset", "cluster-queue-name", "local-queue-name", "workload"}
        keys = (meta.labels(pod) | meta.annotations(pod)).keys()
        assert not keys & {f"kueue.x-k8s.io/{name}" for name in added}


@under_kueue(2, nodes=2)
async def test_exclusive_placement_works_with_admission(world: SimulatedCluster, one: Kueue) -> None:
    """The leader starts alone, and its workers start when they exist (R-KQ-69)."""
    lws = queued(replicas=2, size=2)
    lws["metadata"]["annotations"] = {labels.EXCLUSIVE_TOPOLOGY: HOSTNAME}
    await world.bring_up(lws)
    found = {meta.name(pod): meta.spec(pod)["nodeName"] for pod in await world.objects(PODS)}
    assert found["web-0"] == found["web-0-1"] != found["web-1"] == found["web-1-1"]


@under_kueue(1)
async def test_change_that_kueue_rejects_changes_nothing(world: SimulatedCluster, one: Kueue) -> None:
    """The user receives the rejection. The controllers never write a rejected change (R-KQ-5, R-KQ-16 to R-KQ-18)."""
    await world.bring_up(queued(replicas=1))
    key = ObjectKey(NAMESPACE, "web")
    before = await world.uids()
    changes: list[JSONObject] = [
        {"spec": {"leaderWorkerTemplate": {"size": 4}}},
        {"spec": {"leaderWorkerTemplate": {"workerTemplate": {"spec": {"nodeSelector": {"a": "b"}}}}}},
        {"metadata": {"labels": {QUEUE: None}}},
        {"metadata": {"labels": {PRIORITY: "high"}}},
    ]
    for patch in changes:
        with pytest.raises(ForbiddenError, match="immutable"):
            await world.client.patch(LEADERWORKERSETS, key, patch, kind="merge")
    await world.ready()
    assert await world.uids() == before


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
@under_kueue(1)
async def test_deleted_set_removes_waiting_pods(world: SimulatedCluster, one: Kueue, propagation: Propagation) -> None:
    """Pods that wait for quota are also deleted, because no finalizer is added to them (R-KQ-65, R-KQ-66)."""
    await world.create(queued(replicas=2))
    await world.until_objects(PODS, lambda pods: run(pods, 0) and len(pods) == 6)
    assert not any(meta.metadata(pod).get("finalizers") for pod in await world.objects(PODS))
    await world.client.delete(LEADERWORKERSETS, ObjectKey(NAMESPACE, "web"), propagation=propagation)
    await world.until_objects(LEADERWORKERSETS, lambda found: not found)
    await world.until_objects(PODS, lambda pods: not pods)


@under_kueue(2)
async def test_fields_that_kueue_reads_never_change(world: SimulatedCluster, one: Kueue) -> None:
    """Kueue reads the UID and keys of metadata and templates (R-KQ-11 to R-KQ-13, R-KQ-40)."""
    created = await world.create(queued(replicas=2))
    await world.ready()
    await world.edit(leaderWorkerTemplate={"workerTemplate": template("app:2")})
    await world.ready()
    await world.edit(replicas=1)
    found = await world.ready()
    assert meta.uid(found) == meta.uid(created)
    assert meta.labels(found) == meta.labels(created)
    worker = meta.spec(found)["leaderWorkerTemplate"]["workerTemplate"]
    assert meta.labels(worker)[QUEUE] == "team"
    assert meta.annotations(worker)[PARENT] == FRAMEWORK


def test_webhooks_run_after_those_of_kueue() -> None:
    """Kueue does not set the type of the strategy. Only the webhook of this project sets it (R-KQ-10)."""
    assert CONFIGURATION < MUTATING_NAME
