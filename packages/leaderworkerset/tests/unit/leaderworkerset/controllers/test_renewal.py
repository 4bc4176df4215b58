"""Tests a manager with an older role that may not write StatefulSet statuses. Broken groups wait."""

import pytest
from testkit.fakes import failure
from tests import builders
from tests.unit.leaderworkerset.controllers.cluster import CountingTransport, NodelessCluster

from kuberuntime.client.transport import Request, Response
from kuberuntime.objects import meta
from kuberuntime.objects.resources import EVENTS, PODS, STATEFULSETS
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core.leaderworkerset import outdatedleaders

pytestmark = pytest.mark.virtual_time

REFUSAL = 'User "manager" cannot patch resource "statefulsets/status" in API group "apps"'


class OlderRole(CountingTransport):
    """Rejects patches of StatefulSet statuses until `is_granted`."""

    def __init__(self, cluster: NodelessCluster) -> None:
        super().__init__(cluster.server, "manager")
        self.is_granted = False
        self.refused = 0

    async def request(self, request: Request) -> Response:
        is_refused = request.method == "PATCH" and "/statefulsets/" in request.path and "/status" in request.path
        if is_refused and not self.is_granted:
            self.refused += 1
            return failure(403, "Forbidden", REFUSAL)
        return await super().request(request)


async def images(cluster: NodelessCluster) -> dict[str, str]:
    return {meta.name(pod): pod["spec"]["containers"][0]["image"] for pod in await cluster.objects(PODS)}


async def test_rollout_waits_for_the_permission_without_failing(cluster: NodelessCluster) -> None:
    """As in the Go controller, the partition blocks the broken group. One Warning contains the missing permission."""
    cluster.transport = transport = OlderRole(cluster)
    async with cluster.managed():
        await cluster.bring_up(builders.leaderworkerset_object(image="app:1", replicas=3, size=1))
        await cluster.make_unready("web-0")
        await cluster.edit(leaderWorkerTemplate={"workerTemplate": builders.pod_template("app:2")})
        await cluster.settle(300)

        assert set((await images(cluster)).values()) == {"app:1"}
        assert outdatedleaders.read_progress(await cluster.get(STATEFULSETS, "web")).partition == 3
        assert meta.status(await cluster.get(LEADERWORKERSETS, "web"))["readyReplicas"] == 2
        warnings = [event for event in await cluster.objects(EVENTS) if event["type"] == "Warning"]
        assert ["patch on statefulsets/status" in one["note"] and REFUSAL in one["note"] for one in warnings] == [True]
        assert 2 <= transport.refused <= 12

        transport.is_granted = True
        await cluster.settle(120)
        assert set((await images(cluster)).values()) == {"app:2"}
