"""Tests with the audit log that idle managers and new leaders do not write."""

import asyncio
from typing import Final

import pytest
from tests.kubernetes.manager.groups import CheckedNamespace
from tests.kubernetes.manager.world import InstalledCluster

pytestmark = pytest.mark.slow

COUNT: Final = 10
SECONDS: Final = 10.0
REVIEWS: Final = {"create tokenreviews", "create subjectaccessreviews"}
"""Requests that a manager sends because clients read its metrics."""


async def test_idle_managers_write_nothing(world: InstalledCluster) -> None:
    """The audit log contains only lease renewals by two managers, even after a handover."""
    leader = await world.start("a")
    other = await world.start("b")
    await world.await_master(leader)
    space = await CheckedNamespace(world.client, "at-rest").open()
    names = [f"web-{index}" for index in range(COUNT)]
    await asyncio.gather(*(space.create_groups(name, replicas=1, size=2) for name in names))
    for name in names:
        await space.await_ready(name, 1)
    await world.rest()
    mark, versions = world.audit.mark(), await space.versions()
    await asyncio.sleep(SECONDS)
    assert world.writes(mark) == {}
    assert world.renewals(mark) > 0
    assert await space.versions() == versions
    world.balancer.backends.remove(leader.webhooks)
    await leader.stop()
    await world.await_master(other)
    await asyncio.sleep(SECONDS)
    assert world.writes(mark).keys() <= REVIEWS
