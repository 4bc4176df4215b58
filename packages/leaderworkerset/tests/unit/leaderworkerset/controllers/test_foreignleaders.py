"""Tests that a foreign pod with the name and labels of a leader is neither counted nor deleted."""

import pytest
from tests import builders
from tests.unit.leaderworkerset.controllers.cluster import NAMESPACE, NodelessCluster

from kuberuntime.objects import meta
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS

pytestmark = [pytest.mark.slow, pytest.mark.virtual_time]


async def test_foreign_leader_that_changes_is_left_alone(cluster: NodelessCluster) -> None:
    """The pod changes after the controller has started to watch the groups."""
    lws = builders.leaderworkerset_object(replicas=1, size=1)
    own = {labels.NAME: "web", labels.GROUP_INDEX: "0", labels.WORKER_INDEX: "0"}
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "other", "uid": "1234", "controller": True}
    metadata = {
        "name": "web-0",
        "namespace": NAMESPACE,
        "labels": own,
        "annotations": {labels.SIZE: "1"},
        "ownerReferences": [thing],
    }
    async with cluster.managed():
        foreign = await cluster.client.create(
            PODS, {**PODS.type_meta, "metadata": metadata, "spec": {"containers": [{"name": "main", "image": "app:1"}]}}
        )
        await cluster.create(lws)
        await cluster.settle()
        change = {"metadata": {"annotations": {"example.com/seen": "true"}}}
        await cluster.patch(change, "web-0", resource=PODS)
        await cluster.settle()
        assert (await cluster.uids())["web-0"] == meta.uid(foreign)
        assert meta.is_condition_true(await cluster.get(PODS, "web-0"), "Ready")
        set_ = await cluster.get(LEADERWORKERSETS, "web")
        assert (meta.status(set_).get("replicas"), meta.status(set_).get("readyReplicas")) in ((None, None), (0, 0))
        assert not meta.is_condition_true(set_, "Available")
