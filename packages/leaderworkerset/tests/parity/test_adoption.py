"""Tests that the Go controller and this controller adopt each other's sets without restarting pods."""

import asyncio
from collections.abc import Sequence

import pytest
from tests.parity.clusters import ParityCluster
from tests.parity.conftest import Start
from tests.parity.handover import Stage, at_rest
from tests.parity.replay import NAMESPACE, Case, Watched, batches, clear, load, watching

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request
from kuberuntime.objects import meta
from kuberuntime.objects.gotypes.canonicaljson import canonical_json
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, PODS, STATEFULSETS
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS

MANAGED = (LEADERWORKERSETS.kind, PODS.kind, STATEFULSETS.kind, CONTROLLER_REVISIONS.kind)


def marks(watched: Watched) -> dict[tuple[str, str], tuple[str, int]]:
    """Return the UID and the generation of all objects on which a pod depends."""
    return {
        (obj["kind"], meta.name(obj)): (meta.uid(obj), meta.generation(obj))
        for obj in watched.objects()
        if obj["kind"] in MANAGED
    }


async def play(client: Client, watched: Watched, cases: Sequence[Case]) -> list[Stage]:
    """Create the recorded objects in the cluster."""
    stages = [Stage(client, watched, case) for case in cases]
    for stage in stages:
        await stage.create()
    await watched.settle(lambda: all(stage.leaders_are_there() for stage in stages))
    for stage in stages:
        await stage.follow()
    await watched.settle(lambda: all(stage.is_up() for stage in stages))
    assert [stage.name for stage in stages if not stage.is_up()] == []
    for stage in stages:
        await stage.report()
    return stages


async def take_over(cluster: ParityCluster, watched: Watched, cases: Sequence[Case]) -> None:
    go = Client(cluster.agent)
    await play(go, watched, cases)
    await watched.settle(lambda: True)
    before = marks(watched)
    cluster.agent.writes.clear()
    applies = {("PATCH", STATEFULSETS.path(NAMESPACE, meta.name(case["input"]))): 1 for case in cases}
    async with cluster.manager():
        await watched.settle(lambda: cluster.agent.writes.keys() >= applies.keys())
    assert marks(watched) == before
    assert cluster.agent.writes == applies
    await clear(cluster.client, watched, cases)


@pytest.mark.slow
def test_fleet_of_the_go_controller_is_adopted_unchanged(start: Start) -> None:
    """No pod, spec or revision changes. Each leader StatefulSet is applied once.

    Rules N-AT-18, R-REV-17, R-REV-10, R-REV-11, R-LSTS-1.
    """

    async def scenario() -> None:
        async with start() as one, watching(one.client) as watched:
            for batch in batches(at_rest(load())):
                await take_over(one, watched, batch)

    asyncio.run(scenario())


async def hand_back(cluster: ParityCluster, watched: Watched, cases: Sequence[Case]) -> None:
    stages = [Stage(Client(cluster.agent), watched, case) for case in cases]
    async with cluster.manager():
        for stage in stages:
            await stage.create_spec()
        await watched.settle(lambda: all(stage.is_available() for stage in stages))
    assert [stage.name for stage in stages if not stage.is_available()] == []
    await watched.settle(lambda: True)
    before = marks(watched)
    for stage in stages:
        live = await cluster.client.get(LEADERWORKERSETS, stage.key)
        sets = await cluster.client.get(STATEFULSETS, stage.key)
        applied = await stage.apply_leader_set(live)
        assert _comparable(applied) == _comparable(sets), stage.name
        body = await _raw_revisions(cluster.client, stage.name)
        assert b'"data":' + canonical_json(stage.current_revision()["data"]) in body, stage.name
    await watched.settle(lambda: True)
    assert marks(watched) == before
    await clear(cluster.client, watched, cases)


def _comparable(statefulset: JSONObject) -> JSONObject:
    """Return the fields that v0.10 applies. It removes the `role` label, which it does not recognize."""
    metadata = meta.metadata(statefulset)
    kept = {name: metadata[name] for name in ("uid", "generation", "annotations", "ownerReferences")}
    own = {key: value for key, value in metadata["labels"].items() if key != labels.ROLE}
    return {"metadata": kept | {"labels": own}, "spec": statefulset["spec"]}


async def _raw_revisions(client: Client, name: str) -> bytes:
    query = (("labelSelector", f"leaderworkerset.sigs.k8s.io/name={name}"),)
    answer = await client.send(
        Request("GET", CONTROLLER_REVISIONS.path("default"), query, {"accept": "application/json"})
    )
    return answer.body


@pytest.mark.slow
def test_apply_of_the_go_controller_changes_nothing(start: Start) -> None:
    """Its server-side apply changes only a label of the StatefulSet. Its revision exists byte for byte.

    Rules R-LSTS-1, R-LSTS-2, R-REV-6, R-REV-7.
    """

    async def scenario() -> None:
        async with start() as one, watching(one.client) as watched:
            for batch in batches(at_rest(load())):
                await hand_back(one, watched, batch)

    asyncio.run(scenario())
