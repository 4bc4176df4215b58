"""Tests the pod policy controller on an API server that stores policies but does not evaluate them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.unit.leaderworkerset.controllers.cluster import NodelessCluster

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import MUTATING_WEBHOOK_CONFIGURATIONS
from leaderworkerset.api.crd import build_crd
from leaderworkerset.capabilities import names
from leaderworkerset.controllers.podpolicies import CONFIGURATION
from leaderworkerset.core.admission import podpolicy
from leaderworkerset.kinds.managedkinds import managed_kinds
from localkube.apiserver.custom.customresource import kind_from_crd

pytestmark = pytest.mark.virtual_time

ANY: JSONObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
WEBHOOKS: JSONObject = {**MUTATING_WEBHOOK_CONFIGURATIONS.type_meta, "metadata": {"name": CONFIGURATION.name}}


@asynccontextmanager
async def running(*, serves: bool = True) -> AsyncIterator[NodelessCluster]:
    """Run a cluster with a manager that may use policies. The API server may serve them."""
    schema = {"schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": ANY}}}}
    cluster = NodelessCluster(kind_from_crd(build_crd(kind, {}, schema)) for kind in podpolicy.KINDS if serves)
    cluster.kinds = managed_kinds(configured={names.POD_ADMISSION: True})
    async with cluster.running():
        yield cluster


async def stored(cluster: NodelessCluster) -> list[JSONObject | None]:
    return [await cluster.client.find(kind, podpolicy.KEY) for kind in podpolicy.KINDS]


async def test_objects_are_written_with_the_webhooks_and_restored() -> None:
    async with running() as cluster, cluster.managed():
        await cluster.settle()
        assert await stored(cluster) == [None, None]
        configuration = await cluster.client.create(MUTATING_WEBHOOK_CONFIGURATIONS, WEBHOOKS)
        await cluster.settle()
        policy, binding = await stored(cluster)
        assert policy is not None
        assert binding is not None
        assert meta.metadata(policy)["ownerReferences"][0]["uid"] == meta.uid(configuration)
        await cluster.client.patch(podpolicy.KINDS[0], podpolicy.KEY, {"spec": {"failurePolicy": "Fail"}}, kind="merge")
        await cluster.client.delete(podpolicy.KINDS[1], podpolicy.KEY)
        await cluster.settle()
        restored = await stored(cluster)
        assert [obj and obj["spec"] for obj in restored] == [policy["spec"], binding["spec"]]
        before = cluster.transport.writes.copy()
        await cluster.settle(600)
        assert cluster.transport.writes == before, "nothing is written at rest"


async def test_nothing_is_written_if_policies_are_not_served() -> None:
    async with running(serves=False) as cluster, cluster.managed():
        await cluster.client.create(MUTATING_WEBHOOK_CONFIGURATIONS, WEBHOOKS)
        await cluster.settle()
        assert not cluster.transport.writes
