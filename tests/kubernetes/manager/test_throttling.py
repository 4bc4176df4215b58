"""Tests an overloaded API server. The manager waits as requested, and continues after the overload."""

from collections.abc import Sequence
from typing import Final

import pytest
from tests.kubernetes.manager.groups import CheckedNamespace, counter
from tests.kubernetes.manager.installation import SCRAPER, token_of
from tests.kubernetes.manager.replicas import LIMIT, Replica, until
from tests.kubernetes.manager.throttle import TOO_MANY, refusing
from tests.kubernetes.manager.world import InstalledCluster

from leaderworkerset.api.metadata import MANAGER

pytestmark = pytest.mark.slow

OF_CONTROLLERS: Final = ("", "apps", "events.k8s.io", "leaderworkerset.x-k8s.io")
COUNT: Final = 5
REFUSALS: Final = 12


def refusals(world: InstalledCluster, since: int) -> int:
    """Return the number of manager requests that the API server rejected."""
    return sum(event["responseStatus"].get("code") == TOO_MANY for event in world.audit.events(since))


async def counted_refusals(replica: Replica, token: str) -> int:
    """Return the number of rejections that the manager counted."""
    _, text = await replica.metrics_with(token)
    samples = counter(text, "rest_client_requests_total")
    return sum(count for labels, count in samples.items() if f'code="{TOO_MANY}"' in labels)


@pytest.mark.parametrize(
    ("groups", "consequence"),
    [(OF_CONTROLLERS, "failed to reconcile"), (("*",), "leadership lost")],
    ids=["most", "all"],
)
async def test_throttled_requests_are_retried_until_accepted(
    world: InstalledCluster, groups: Sequence[str], consequence: str
) -> None:
    """LeaderWorkerSets from the time of the overload become ready after it. Lost leadership is regained."""
    replica = await world.start("a")
    await world.await_master(replica)
    space = await CheckedNamespace(world.client, f"throttled-{len(groups)}").open()
    names = [f"web-{index}" for index in range(COUNT)]
    token = await token_of(world.client, SCRAPER)
    async with refusing(world.client, world.plane, await token_of(world.client, MANAGER), groups):
        mark = world.audit.mark()
        for name in names:
            await space.create_groups(name, replicas=2, size=2)

        async def had_consequences() -> bool:
            return refusals(world, mark) >= REFUSALS and consequence in replica.log.read_text()

        await until(had_consequences, replica, seconds=2 * LIMIT)  # the API server requests increasing delays
        assert [await space.ready_groups(name) for name in names] == [0] * COUNT
    for name in names:
        await space.await_ready(name, 2)
    await space.assert_whole(*names, replicas=2, size=2)
    await world.await_master(replica)
    assert await counted_refusals(replica, token) >= REFUSALS
    assert replica.process.poll() is None
    assert replica.failures() == []
    assert "failed to write an event" not in replica.log.read_text()
