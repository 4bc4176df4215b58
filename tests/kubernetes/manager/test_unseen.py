"""Tests that only one group is recreated if a worker is deleted while no manager is running.

The worker is deleted after a leader is killed and before its successor starts.

The other manager's webhook admits the worker's successor meanwhile, so that all pods exist when it begins to lead.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from tests.integration.clusters import objects
from tests.kubernetes.manager.groups import CheckedNamespace
from tests.kubernetes.manager.replicas import until
from tests.kubernetes.manager.world import InstalledCluster

from kuberuntime.objects import meta
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core.restarts import missingworkers

pytestmark = pytest.mark.slow

SLOW: Final = {"workerTemplate": objects.slow_template(2)}
"""Tests pods that start as slowly as real pods. Groups become ready at least one second after their creation."""

SETS: Final = {
    lws["metadata"]["name"]: lws
    for lws in (
        objects.lws("torn", replicas=2, size=3, template=SLOW),
        objects.lws("whole", replicas=2, size=3, template=SLOW),
        objects.lws("late", replicas=1, size=3, template=SLOW, startupPolicy="LeaderReady"),
        objects.lws("resized", replicas=1, size=2, template=SLOW),
        objects.lws("grown", replicas=1, size=2, template=SLOW),
        objects.lws("alone", replicas=1, size=3, template=SLOW | {"restartPolicy": "None"}),
    )
}
EDITS: Final = {"resized": {"leaderWorkerTemplate": {"size": 3}}, "grown": {"replicas": 2}}
LOST: Final = ("torn-1-2", "alone-0-1")


async def test_worker_lost_without_a_leader_recreates_its_group(world: InstalledCluster) -> None:
    first = await world.start("a")
    await world.await_master(first)
    second = await world.start("b")
    space = await CheckedNamespace(world.client, "unseen-workers").open()
    await come_to_be(space)
    before = await uids(space)
    await until_times_differ(space)

    first.kill()
    world.balancer.backends.remove(first.webhooks)
    for name in LOST:
        await world.client.delete(PODS, ObjectKey(space.namespace, name), grace_period=0)
    await are_replaced(space, before, LOST, world)
    await world.await_master(second)

    await are_replaced(space, before, ("torn-1", "torn-1-1"), world)
    await are_ready(space)
    await world.rest()
    after = await uids(space)
    assert after.keys() == before.keys()
    assert {name for name in after if after[name] != before[name]} == {"torn-1", "torn-1-1", *LOST}


async def come_to_be(space: CheckedNamespace) -> None:
    """Create the LeaderWorkerSets, and apply the requested edits until all groups are ready."""
    for lws in SETS.values():
        await space.client.create(
            LEADERWORKERSETS, lws | {"metadata": lws["metadata"] | {"namespace": space.namespace}}
        )
    for name, lws in SETS.items():
        await space.await_ready(name, lws["spec"]["replicas"])
    for name, spec in EDITS.items():
        await space.client.patch(LEADERWORKERSETS, ObjectKey(space.namespace, name), {"spec": spec}, kind="merge")
    await are_ready(space)


async def are_ready(space: CheckedNamespace) -> None:
    for name, lws in SETS.items():
        await space.await_ready(name, (lws["spec"] | EDITS.get(name, {}))["replicas"])


async def uids(space: CheckedNamespace) -> dict[str, str]:
    """Return the UIDs of all pods by pod name."""
    pods = await space.client.list(PODS, namespace=space.namespace, label_selector=labels.NAME)
    return {meta.name(pod): meta.uid(pod) for pod in pods.items}


async def until_times_differ(space: CheckedNamespace) -> None:
    """Wait until new objects are later than the statuses, by more than the clock skew of API servers."""

    async def are_later() -> bool:
        listing = await space.client.list(LEADERWORKERSETS, namespace=space.namespace)
        times = [datetime.fromisoformat(missingworkers.complete_since(lws)) for lws in listing.items]
        return datetime.now(UTC) - max(times) > missingworkers.DRIFT + timedelta(seconds=1)

    await until(are_later)


async def are_replaced(
    space: CheckedNamespace, before: dict[str, str], names: tuple[str, ...], world: InstalledCluster
) -> None:
    async def has_others() -> bool:
        now = await uids(space)
        return all(now.get(name, before[name]) != before[name] for name in names)

    await until(has_others, *world.replicas[1:])
