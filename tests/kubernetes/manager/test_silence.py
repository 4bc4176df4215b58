"""Tests that a leader recovers if a load balancer keeps its watch connections open without an API server."""

import json
from typing import Final
from urllib.parse import urlsplit

import pytest
from testkit.stallingproxy import stalling_proxy
from tests.kubernetes.manager.groups import CheckedNamespace
from tests.kubernetes.manager.replicas import until
from tests.kubernetes.manager.world import InstalledCluster

from kuberuntime.cache.reflector import SILENCE
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import STATEFULSETS
from leaderworkerset.api.resources import LEADERWORKERSETS

pytestmark = pytest.mark.slow

SLACK: Final = 15.0


async def test_manager_behind_a_half_dead_balancer_acts(world: InstalledCluster) -> None:
    async with stalling_proxy(urlsplit(world.plane.server).port or 443) as proxy:
        replica = await world.prepare("a")
        config = json.loads(replica.kubeconfig.read_text())
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{proxy.port}"
        replica.kubeconfig.write_text(json.dumps(config))
        await world.begin(replica)
        space = await CheckedNamespace(world.client, "half-dead").open()
        await space.create_groups("web", replicas=2, size=2)
        await space.await_ready("web", 2)
        await world.rest()

        proxy.stall()
        key = ObjectKey(space.namespace, "web")
        await world.client.patch(LEADERWORKERSETS, key, {"spec": {"replicas": 3}}, kind="merge")

        async def is_scaled() -> bool:
            return bool((await world.client.get(STATEFULSETS, key))["spec"]["replicas"] == 3)

        await until(is_scaled, replica, seconds=SILENCE + SLACK)
        await space.await_ready("web", 3)
        silent = [line for line in replica.log.read_text().splitlines() if "watch did not send events" in line]
        assert sum("leaderworkersets.leaderworkerset.x-k8s.io" in line for line in silent) == 1
