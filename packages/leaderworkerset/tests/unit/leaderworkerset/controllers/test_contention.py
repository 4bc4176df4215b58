"""Tests that a second writer of a leader StatefulSet field does not cause endless writes."""

import asyncio

import pytest
from tests import builders
from tests.unit.leaderworkerset.controllers.cluster import NodelessCluster

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import EVENTS, PODS, STATEFULSETS
from leaderworkerset.api import labels

pytestmark = pytest.mark.virtual_time


class Adversary:
    """Reverts a label of the leader StatefulSet immediately, until it is `stopped`."""

    def __init__(self, cluster: NodelessCluster, label: str) -> None:
        self.cluster, self.label = cluster, label
        self.changed = asyncio.Event()
        self.reverted = 0

    def observe(self, change: Change) -> None:
        new = change.new
        if new is not None and meta.name(new) == "web" and meta.labels(new).get(self.label) != "other":
            self.changed.set()

    async def run(self) -> None:
        while True:
            await self.changed.wait()
            self.changed.clear()
            patch: JSONObject = {"metadata": {"labels": {self.label: "other"}}}
            key = next(meta.key(one) for one in await self.cluster.objects(STATEFULSETS) if meta.name(one) == "web")
            await self.cluster.client.patch(STATEFULSETS, key, patch, kind="merge")
            self.reverted += 1


async def test_field_that_is_taken_back_is_written_rarely(cluster: NodelessCluster) -> None:
    """One Warning event contains the field and both writers. A rollout with other content is not delayed."""
    async with cluster.managed(), asyncio.TaskGroup() as group:
        await cluster.bring_up(builders.leaderworkerset_object(image="app:1", replicas=2, size=1))
        label = min(set(meta.labels(await cluster.get(STATEFULSETS, "web"))) - {labels.NAME})
        informer, adversary = Informer(cluster.client, STATEFULSETS), Adversary(cluster, label)
        informer.subscribe(adversary.observe)
        tasks = [group.create_task(informer.run()), group.create_task(adversary.run())]
        await cluster.settle(600)
        assert 25 <= adversary.reverted <= 34

        (event,) = [one for one in await cluster.objects(EVENTS) if one["reason"] == "FieldContention"]
        assert event["type"] == "Warning"
        assert event["regarding"]["name"] == "web"
        assert f"metadata.labels.{label} is written by lws and by " in event["note"]

        await cluster.edit(leaderWorkerTemplate={"workerTemplate": builders.pod_template("app:2")})
        await cluster.settle(60)
        assert {one["spec"]["containers"][0]["image"] for one in await cluster.objects(PODS)} == {"app:2"}
        for task in tasks:
            task.cancel()
        await cluster.settle(120)
        assert meta.labels(await cluster.get(STATEFULSETS, "web"))[label] != "other"
