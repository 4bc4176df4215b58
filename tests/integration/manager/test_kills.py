"""A manager killed again and again, at random, while LeaderWorkerSets are created, updated, fail and are scaled.

Nothing is created or recreated twice, and the end is the same as without a death. `KILLS=200 LEADERWORKERSETS=20` makes
of the short test the long one.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, Final

import pytest
from tests.integration.clusters.kubernetes import KubernetesCluster
from tests.integration.manager.conftest import Worlds
from tests.integration.manager.groups import Space
from tests.integration.manager.replicas import Replica, until
from tests.integration.manager.world import World

from kuberuntime.errors import KubeError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS
from leaderworkerset.api.resources import LEADERWORKERSETS

pytestmark = pytest.mark.slow

KILLS: Final = int(os.environ.get("KILLS", "10"))
NAMES: Final = [f"web{number}" for number in range(int(os.environ.get("LEADERWORKERSETS", "4")))]
REPLICAS: Final = 2
SIZE: Final = 2
PATIENCE: Final = 120.0 + 10.0 * KILLS
"""Seconds in which a phase must come to its end; every death costs a start, and some a lease."""

PHASES: Final = 4


class Reaper:
    """Kills a manager at random moments, and starts it again: so often in each phase."""

    def __init__(self, replica: Replica) -> None:
        self.kills = 0
        self._replica = replica
        self._random = Random(KILLS)

    async def reap(self, kills: int) -> None:
        """Kill so many times; the last time it stays alive."""
        for _ in range(kills):
            await asyncio.sleep(self._random.uniform(0.0, 2.5))
            self._replica.kill()
            self.kills += 1
            self._replica.start()
        await until(self._replica._is_ready, self._replica, seconds=PATIENCE)


async def insist(call: Callable[[], Coroutine[Any, Any, Any]]) -> None:
    """Do what the API server refuses while no webhook answers."""

    async def is_done() -> bool:
        try:
            await call()
        except KubeError:
            return False
        return True

    await until(is_done, seconds=PATIENCE)


async def await_whole(space: Space, replicas: int) -> None:
    """Wait until all groups of all LeaderWorkerSets are there, ready and reported."""

    async def is_whole() -> bool:
        for name in NAMES:
            lws = await space.client.get(LEADERWORKERSETS, ObjectKey(space.namespace, name))
            counts = [meta.status(lws).get(field) for field in ("readyReplicas", "updatedReplicas")]
            is_seen = meta.status(lws).get("observedGeneration") == meta.generation(lws)
            if counts != [replicas, replicas] or not is_seen or not meta.is_condition_true(lws, "Available"):
                return False
        return True

    await until(is_whole, seconds=PATIENCE)


async def pods_of(space: Space) -> dict[str, JSONObject]:
    listing = await space.client.list(PODS, namespace=space.namespace)
    return {meta.name(pod): pod for pod in listing.items}


def successes(world: World, since: int, verb: str, resource: str) -> Counter[str]:
    """Count what the manager wrote and the API server performed, by name."""
    found: Counter[str] = Counter()
    for event in world.audit.events(since):
        reference = event.get("objectRef") or {}
        is_meant = event["verb"] == verb and reference.get("resource") == resource and "subresource" not in reference
        if is_meant and event["responseStatus"]["code"] < 300:
            found[reference["name"]] += 1
    return found


def test_a_manager_that_is_killed_at_random_does_nothing_twice(worlds: Worlds) -> None:
    async def scenario() -> None:
        async with worlds() as world:
            space = Space(world.client, "kills")
            await space.open()
            reaper = Reaper(await world.start("a"))

            async def phase(change: Callable[[str], Coroutine[Any, Any, Any]], replicas: int) -> int:
                mark = world.audit.mark()
                async with asyncio.TaskGroup() as group:
                    group.create_task(reaper.reap(max(KILLS // PHASES, 1)))
                    for name in NAMES:
                        group.create_task(insist(lambda name=name: change(name)))  # type: ignore[misc]
                await await_whole(space, replicas)
                return mark

            created = await phase(lambda name: create(space, name), REPLICAS)
            await space.assert_whole(*NAMES, replicas=REPLICAS, size=SIZE)
            assert set(successes(world, created, "create", "statefulsets").values()) == {1}
            assert not successes(world, created, "delete", "pods")

            rolled = await phase(lambda name: roll(space, name), REPLICAS)
            images = {meta.spec(pod)["containers"][0]["image"] for pod in (await pods_of(space)).values()}
            assert images == {"app:2"}
            assert set(successes(world, rolled, "delete", "pods").values()) <= {1}

            before = await pods_of(space)
            failing = [f"{name}-1-1" for name in NAMES]
            failed = await phase(lambda name: fail(world, space, before[f"{name}-1-1"]), REPLICAS)
            await until(lambda: are_replaced(space, before, failing), seconds=PATIENCE)
            await await_whole(space, REPLICAS)
            after = await pods_of(space)
            replaced = {name for name in before if meta.uid(before[name]) != meta.uid(after[name])}
            assert replaced == {pod for name in NAMES for pod in (f"{name}-1", f"{name}-1-1")}
            assert successes(world, failed, "delete", "pods") == {f"{name}-1": 1 for name in NAMES}

            scaled = await phase(lambda name: space.scale(name, REPLICAS + 1), REPLICAS + 1)
            await space.assert_whole(*NAMES, replicas=REPLICAS + 1, size=SIZE)
            assert set(successes(world, scaled, "create", "statefulsets").values()) == {1}
            assert not successes(world, scaled, "delete", "pods")
            assert reaper.kills >= max(KILLS // PHASES, 1) * PHASES

    asyncio.run(scenario())


async def create(space: Space, name: str) -> None:
    """Create a LeaderWorkerSet whose groups are recreated; one that is there already is what was wanted."""
    try:
        await space.client.get(LEADERWORKERSETS, ObjectKey(space.namespace, name))
    except KubeError:
        await space.create(name, replicas=REPLICAS, size=SIZE)


async def roll(space: Space, name: str) -> None:
    """Ask for another image."""
    patch = [{"op": "replace", "path": f"{WORKER}/spec/containers/0/image", "value": "app:2"}]
    await space.client.patch(LEADERWORKERSETS, ObjectKey(space.namespace, name), patch, kind="json")


WORKER: Final = "/spec/leaderWorkerTemplate/workerTemplate"


async def fail(world: World, space: Space, pod: JSONObject) -> None:
    """Let the container of a pod end once."""
    await KubernetesCluster(world.plane.kubeconfig).restart_container(space.client, pod)


async def are_replaced(space: Space, before: dict[str, JSONObject], names: list[str]) -> bool:
    """Return whether these pods are others than before."""
    now = await pods_of(space)
    return all(name in now and meta.uid(now[name]) != meta.uid(before[name]) for name in names)
