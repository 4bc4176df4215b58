"""Tests a busy namespace next to a rollout by counting operations, because machines differ in speed."""

from collections.abc import Hashable
from typing import Final

from tests import builders
from tests.simulation import product
from tests.simulation.cluster import NAMESPACE, Settings, SimulatedCluster, simulated
from tests.simulation.workloads import SLOW, groups, template

from kuberuntime.client.client import Client
from kuberuntime.client.ratelimit import LimitedTransport, TokenBucket
from kuberuntime.controller.workqueue import Observer, Result
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NAMESPACES
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.controllers.instruments import Instruments

BUSY: Final = "busy"
SETS: Final = 400
"""The number of LeaderWorkerSets in the busy namespace.

They cause two thousand writes and 400 queued keys in one controller.
"""

RATE: Final = 10.0
"""The number of sequential requests per second, so that all callers wait for the quota."""


class Counted(Instruments):
    """Counts decisions of the `own` namespace, and of others while keys of `own` were queued."""

    def __init__(self) -> None:
        super().__init__()
        self.own = self.before = self._waiting = 0

    def controller(self, name: str) -> Observer:
        """Return the queue observer."""
        return self

    def queued(self, key: Hashable) -> None:
        """Record a queued key."""
        self._waiting += _is_own(key)

    def taken(self, key: Hashable) -> None:
        """Record a key that a worker processes."""
        self._waiting -= _is_own(key)
        self.own += _is_own(key)
        self.before += not _is_own(key) and self._waiting > 0

    def retried(self, key: Hashable) -> None:
        """Ignore the event."""

    def finished(self, key: Hashable, result: Result) -> None:
        """Ignore the event."""


def _is_own(key: Hashable) -> bool:
    return isinstance(key, ObjectKey) and key.namespace == NAMESPACE


async def roll(world: SimulatedCluster, image: str) -> float:
    """Change the image of the set. Return the time in seconds until all groups use it."""
    begun = world.clock.monotonic()
    await world.edit(leaderWorkerTemplate={"workerTemplate": template(image)})
    (lws,) = await world.objects(LEADERWORKERSETS)

    def is_over(found: list[JSONObject]) -> bool:
        status = meta.status(found[0])
        return (
            status.get("observedGeneration") == meta.generation(lws)
            and status.get("updatedReplicas") == status.get("readyReplicas") == meta.spec(lws)["replicas"]
        )

    await world.until_objects(LEADERWORKERSETS, is_over)
    return world.clock.monotonic() - begun


async def make_busy(world: SimulatedCluster) -> None:
    """Create sets in the other namespace. Each needs a revision, a StatefulSet, a Service and a status."""
    await world.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": BUSY}})
    made = builders.leaderworkerset_object(replicas=0)
    for number in range(SETS):
        await world.client.create(LEADERWORKERSETS, made | {"metadata": {"name": f"b{number}", "namespace": BUSY}})


@simulated(Settings(managers=()))
async def test_busy_namespace_at_most_doubles_the_work_of_a_rollout(world: SimulatedCluster) -> None:
    """At most twice as many requests and decisions are made until the rollout completes."""
    wire = LimitedTransport(world._transport("manager", SLOW), TokenBucket(RATE, 1), world.clock)
    counted = Counted()
    async with product.controllers(Client(wire), world.clock, counted):
        await world.bring_up(groups(replicas=2, size=2))
        alone = await roll(world, "app:2")
        await world.at_rest()
        await make_busy(world)
        counted.own = counted.before = 0
        beside = await roll(world, "app:3")
        busy = (await world.client.list(LEADERWORKERSETS, namespace=BUSY)).items
        assert sum("observedGeneration" in meta.status(one) for one in busy) < SETS / 2
        assert 0 < counted.before <= counted.own
        assert beside <= 2 * alone
