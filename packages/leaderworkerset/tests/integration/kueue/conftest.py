"""Runs both clusters with simulated Kueue webhooks, and a simulated Kueue controller in the test's namespace."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Final

import pytest
from testkit.clusters.cluster import NODES_PER_RACK
from testkit.clusters.opencontexts import OpenContext
from tests.integration.clusters.fixtures import Running, manage, pytest_pyfunc_call, runner, running, space
from tests.integration.clusters.space import LiveScenario
from tests.kueue.reconciler import Kueue
from tests.kueue.webhooks import WEBHOOKS, build_configurations

from kuberuntime.clock import SystemClock
from kuberuntime.objects import meta
from kuberuntime.serving.bindaddresses import Address
from leaderworkerset.webhooks import certificates, configurations
from leaderworkerset.webhooks.server import WebhookServer

__all__ = ["manage", "pytest_pyfunc_call", "runner", "running", "space"]

LOOPBACK: Final = "127.0.0.1"


@pytest.fixture(scope="package")
def admission(runner: asyncio.Runner, running: Running) -> Iterator[None]:
    """Serve the simulated webhooks. Their configurations are called before the webhooks of the manager."""
    keeper = runner.run(OpenContext.enter(serving(running)))
    runner.run(keeper.value())
    yield
    runner.run(keeper.leave())


@asynccontextmanager
async def serving(running: Running) -> AsyncIterator[None]:
    """Serve the webhooks for the duration of the `with` block."""
    now = SystemClock().now()
    authority = certificates.create_authority(now)
    chain = certificates.issue(authority, [LOOPBACK], now).chain
    async with WebhookServer(Address(LOOPBACK, 0), chain, {spec.path: spec.decide for spec in WEBHOOKS}) as server:
        made = build_configurations(configurations.at_url(server.url, authority.certificate))
        for resource, obj in made:
            await running.client.apply(resource, obj, manager="kueue")
        yield
        for resource, obj in made:
            await running.client.delete(resource, meta.key(obj))


@pytest.fixture
def kueue(runner: asyncio.Runner, space: LiveScenario, admission: None) -> Iterator[Kueue]:
    """Run the controller without a quota, and check its invariants at the end."""
    del admission
    racks = [[f"node-{rack * NODES_PER_RACK + number}" for number in range(NODES_PER_RACK)] for rack in (0, 1)]
    one = Kueue(space.client, space.namespace, quota=0, domains=racks)
    task = runner.run(started(one))
    yield one
    runner.run(ended(task))
    assert one.overfull == []


async def started(one: Kueue) -> "asyncio.Task[None]":
    """Start the reconciler in the event loop of the tests."""
    return asyncio.create_task(one.run())


async def ended(task: "asyncio.Task[None]") -> None:
    """Stop the controller. Raise its error, if there is one."""
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
