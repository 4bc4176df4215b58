"""Tests StatefulSets on the embedded API server with a simulated kubelet."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from testkit.objects import merge
from tests.integration.controllers.world import NAMESPACE, ControlledServer, cluster
from tests.unit.localkube.controllers.objects import build_statefulset, build_template

from kuberuntime.cache.informer import Change
from kuberuntime.errors import NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, EVENTS, PODS, STATEFULSETS

pytestmark = pytest.mark.slow

PARALLEL: JSONObject = {"podManagementPolicy": "Parallel"}


def build_set(**spec: Any) -> JSONObject:
    """Build the StatefulSet `web` as a user submits it."""
    sent = build_statefulset(**spec)
    return sent | {"metadata": {"name": "web", "namespace": NAMESPACE}}


async def until_settled(world: ControlledServer, replicas: int, revision: str | None = None) -> JSONObject:
    """Wait until the status reports this number of ready replicas, all of which are updated.

    Return the StatefulSet.
    """

    def settled(found: Sequence[JSONObject]) -> bool:
        status = meta.status(found[0]) if found else {}
        counts = [status.get(name) or 0 for name in ("replicas", "readyReplicas", "updatedReplicas", "currentReplicas")]
        current = status.get("observedGeneration") == meta.generation(found[0]) if found else False
        return current and counts == [replicas] * 4 and revision in (None, status.get("currentRevision"))

    return (await world.until(STATEFULSETS, settled))[0]


async def test_terminated_pods_are_replaced(world: ControlledServer) -> None:
    world.start_kubelet()
    await world.client.create(STATEFULSETS, build_set(replicas=1, **PARALLEL))
    await until_settled(world, 1)
    first = await world.get(PODS, "web-0")
    await world.patch(PODS, "web-0", {"status": {"phase": "Failed"}}, subresource="status")
    await world.until(PODS, lambda pods: any(meta.uid(pod) != meta.uid(first) for pod in pods))
    await until_settled(world, 1)
    notes = {f"{verb} Pod web-0 in StatefulSet web successful" for verb in ("Create", "Delete")}
    await world.until(EVENTS, lambda events: notes <= {event["note"] for event in events})


def note(told: dict[str, list[int]], change: Change) -> None:
    counts = told.setdefault(meta.uid(change.object), [])
    count = int(meta.status(change.object).get("replicas") or 0)
    if counts[-1:] != [count]:
        counts.append(count)


async def test_adopted_pods_are_counted_in_one_status(world: ControlledServer) -> None:
    """A status must never omit a pod that exists permanently. kube-controller-manager has the same property."""
    world.start_kubelet()
    await world.client.create(STATEFULSETS, build_set(replicas=4, **PARALLEL))
    await until_settled(world, 4)
    told: dict[str, list[int]] = {}
    (await world.watch(STATEFULSETS)).subscribe(lambda change: note(told, change))
    await world.client.delete(STATEFULSETS, ObjectKey(NAMESPACE, "web"), propagation="Orphan")
    await world.until_named(STATEFULSETS)
    made = await world.client.create(STATEFULSETS, build_set(replicas=4, **PARALLEL))
    await until_settled(world, 4)
    before, after = told.values()
    assert before == sorted(before, reverse=True)
    assert after == [0, 4]
    pods = await world.until(PODS, lambda pods: all(map(meta.controller_of, pods)))
    assert [meta.controller_of(pod) for pod in pods] == [meta.controller_reference(made)] * 4


async def test_settled_set_writes_nothing(world: ControlledServer) -> None:
    world.start_kubelet()
    await world.client.create(STATEFULSETS, build_set(**PARALLEL))
    await until_settled(world, 3)
    await world.until(EVENTS, lambda found: sum(e["reason"] == "SuccessfulCreate" for e in found) == 3)
    before = (await world.client.list(STATEFULSETS)).resource_version
    await world.patch(PODS, "web-0", {"metadata": {"annotations": {"touched": "yes"}}})
    touched = int(meta.resource_version(await world.get(PODS, "web-0")))
    assert touched == int(before) + 1
    later = build_set(replicas=1)
    later["metadata"] = {"name": "later", "namespace": NAMESPACE}
    await world.client.create(STATEFULSETS, later)
    await world.until(PODS, lambda pods: any(meta.name(pod) == "later-0" and "nodeName" in pod["spec"] for pod in pods))
    for resource in (STATEFULSETS, PODS, CONTROLLER_REVISIONS, EVENTS):
        written = {meta.name(obj) for obj in (await world.client.list(resource)).items if version(obj) > touched}
        assert not [name for name in written if name.startswith("web")]


def version(obj: JSONObject) -> int:
    """Return the resourceVersion as a number."""
    return int(meta.resource_version(obj))


async def test_hash_collision_creates_a_different_revision_name(world: ControlledServer) -> None:
    world.start_kubelet()
    await world.client.create(STATEFULSETS, build_set(replicas=1, **PARALLEL))
    first = await until_settled(world, 1)
    revision = await world.get(CONTROLLER_REVISIONS, first["status"]["currentRevision"])
    await world.client.delete(STATEFULSETS, ObjectKey(NAMESPACE, "web"), propagation="Background")
    await world.until_named(CONTROLLER_REVISIONS)
    head = {"name": meta.name(revision), "namespace": NAMESPACE}
    foreign = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": head,
        "revision": 1,
        "data": {},
    }
    await world.client.create(CONTROLLER_REVISIONS, foreign)
    await world.client.create(STATEFULSETS, build_set(replicas=1, **PARALLEL))
    second = await until_settled(world, 1)
    assert second["status"]["collisionCount"] == 1
    assert second["status"]["currentRevision"] != first["status"]["currentRevision"]


async def test_two_hundred_pods_of_fifty_sets_are_bound(world: ControlledServer) -> None:
    for number in range(50):
        labels = {"app": f"web-{number}"}
        template = merge(build_template("v1"), {"metadata": {"labels": labels}})
        sent = build_set(replicas=4, template=template, selector={"matchLabels": labels}, **PARALLEL)
        sent["metadata"]["name"] = f"web-{number}"
        await world.client.create(STATEFULSETS, sent)
    await world.until(PODS, lambda pods: len(pods) == 200 and all(meta.spec(pod).get("nodeName") for pod in pods))


async def test_set_deleted_during_its_creation_leaves_nothing(world: ControlledServer) -> None:
    world.start_kubelet()
    await world.client.create(STATEFULSETS, build_set(replicas=20, **PARALLEL))
    await world.until(PODS, lambda pods: len(pods) > 3)
    await world.client.delete(STATEFULSETS, ObjectKey(NAMESPACE, "web"), propagation="Foreground")
    await world.until_named(STATEFULSETS)
    await world.until_named(PODS)
    await world.until_named(CONTROLLER_REVISIONS)
    with pytest.raises(NotFoundError):
        await world.get(STATEFULSETS, "web")


async def test_quota_limits_two_billion_replicas_with_an_event(tmp_path: Path) -> None:
    def is_refused(events: Sequence[JSONObject]) -> bool:
        notes = [event.get("note") or "" for event in events if event.get("reason") == "FailedCreate"]
        return any("exceeded quota: max-pods, requested: count/pods=1, used: count/pods=10" in note for note in notes)

    async with cluster(tmp_path, max_pods=10) as world:
        world.start_kubelet()
        await world.client.create(STATEFULSETS, build_set(replicas=2**31 - 1, **PARALLEL))
        await world.until(EVENTS, is_refused)
        await world.until(STATEFULSETS, lambda sets: meta.status(sets[0]).get("readyReplicas") == 10)
        await world.patch(STATEFULSETS, "web", {"spec": {"replicas": 2}})
        await until_settled(world, 2)
