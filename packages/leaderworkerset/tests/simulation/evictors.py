"""Simulates users who evict random pods, or all pods of a node with `kubectl drain`.

They retry rejected evictions.
"""

import asyncio
from random import Random

from tests.simulation.cluster import SimulatedCluster

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS


async def evict_any(world: SimulatedCluster, random: Random, times: int) -> None:
    """Evict random pods, some of them concurrently, and ignore rejections."""
    for _ in range(times):
        pods = await world.objects(PODS)
        chosen = random.sample(pods, min(len(pods), random.choice((1, 3, 12))))
        await asyncio.gather(*(world.evict(meta.name(pod)) for pod in chosen))
        await asyncio.sleep(random.choice((0.0, 0.01, 0.05, 0.5, 3.0)))


async def evict_all(world: SimulatedCluster, times: int) -> None:
    """Evict all pods at once, repeatedly."""
    for _ in range(times):
        await asyncio.gather(*(world.evict(meta.name(pod)) for pod in await world.objects(PODS)))
        await asyncio.sleep(0.02)


async def drain(world: SimulatedCluster, node: str, random: Random) -> None:
    """Cordon a node, evict pods until the node is empty, and uncordon it."""
    await world.cordon(node)
    while left := await world.pods_on(node):
        await asyncio.gather(*(world.evict(meta.name(pod)) for pod in left if not meta.is_deleting(pod)))
        await asyncio.sleep(random.choice((0.2, 1.0, 5.0)))
    await world.cordon(node, unschedulable=False)


async def kubectl_drain(world: SimulatedCluster, node: str) -> None:
    """Drain a node as `kubectl drain` does.

    List its pods once, and request the eviction of each pod by name until it is granted.
    """
    await world.cordon(node)
    pods = await world.pods_on(node)

    async def leave(pod: JSONObject) -> None:
        while not await world.evict(meta.name(pod)):  # noqa: ASYNC110 - the API server refuses it until then
            await asyncio.sleep(5.0)
        await world.until_objects(PODS, lambda found: meta.uid(pod) not in {meta.uid(one) for one in found})

    await asyncio.gather(*map(leave, pods))


async def cordon_in_passing(world: SimulatedCluster, node: str, random: Random) -> None:
    """Cordon a node occasionally without draining it."""
    for _ in range(random.choice((1, 5))):
        await asyncio.sleep(random.choice((0.0, 0.1, 2.0)))
        await world.cordon(node)
        await asyncio.sleep(random.choice((0.0, 0.1, 2.0)))
        await world.cordon(node, unschedulable=False)
