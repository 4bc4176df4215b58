"""What fails around the manager and passes by itself: it goes on without a restart."""

import asyncio

import pytest
from tests.controlplane import process
from tests.integration.manager import installation
from tests.integration.manager.conftest import Worlds
from tests.integration.manager.groups import Space

from kuberuntime.objects.resources import PODS
from leaderworkerset.api.metadata import MANAGER

pytestmark = pytest.mark.slow


def test_an_api_server_that_restarts_stops_nobody(worlds: Worlds) -> None:
    async def scenario() -> None:
        async with worlds() as world:
            first = await world.start("a")
            await world.start("b")
            await world.await_master(first)
            space = Space(world.client, "restarted-server")
            await space.open()
            await space.create("web", replicas=2, size=2)
            await space.await_ready("web", 2)
            process.kill(world.plane, "kube-apiserver")
            process.start_again(world.plane, "kube-apiserver")
            process.await_ready(world.plane)
            for replica in world.replicas:
                await replica.await_ready()
            await space.scale("web", 5)
            await space.await_ready("web", 5)
            await space.assert_whole("web", replicas=5, size=2)
            assert all(replica.process.poll() is None for replica in world.replicas)

    asyncio.run(scenario())


def test_a_token_that_is_refused_is_read_again(worlds: Worlds) -> None:
    """The kubelet renews the file; the old token stops being good when its account is made anew."""

    async def scenario() -> None:
        async with worlds() as world:
            replica = await world.start("a")
            await world.await_master(replica)
            space = Space(world.client, "renewed-token")
            await space.open()
            await space.create("web", replicas=1, size=2)
            await space.await_ready("web", 1)
            await installation.recreate_account(world.client)
            await installation.write_token(world.client, MANAGER, replica.kubeconfig.with_suffix(".token"))
            await space.scale("web", 3)
            await space.await_ready("web", 3)
            assert replica.process.poll() is None

    asyncio.run(scenario())


def test_a_fault_in_one_leaderworkerset_stops_no_other(worlds: Worlds) -> None:
    """A quota refuses the pods of the one; the other grows meanwhile."""

    async def scenario() -> None:
        async with worlds() as world:
            await world.await_master(await world.start("a"))
            poor, rich = Space(world.client, "no-quota"), Space(world.client, "with-quota")
            await poor.open()
            await rich.open()
            await poor.forbid_statefulsets()
            await poor.create("web", replicas=2, size=2)
            await rich.create("web", replicas=2, size=2)
            await rich.await_ready("web", 2)
            assert await poor.names(PODS) == []

    asyncio.run(scenario())
