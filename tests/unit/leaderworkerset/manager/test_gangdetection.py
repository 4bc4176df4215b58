"""Which gang schedulers a cluster serves: what is asked, what is known before the first answer, and what comes later."""

import asyncio
import threading
from collections.abc import Collection

import pytest
from tests.gangdefinitions import COSCHEDULING_DEFINITION, VOLCANO_DEFINITION
from tests.simulation import virtualtime
from tests.simulation.virtualtime import VirtualClock

from kuberuntime.client.client import Client
from kuberuntime.errors import ConnectionFailedError
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import CUSTOM_RESOURCE_DEFINITIONS
from leaderworkerset.core.denial import DeniedError
from leaderworkerset.manager.gangdetection import PERIOD, RETRY, GangDetection
from localkube.apiserver import builtin
from localkube.apiserver.inprocess import InProcessTransport
from localkube.apiserver.server import ApiServer
from localkube.apiserver.storage.store import Store


class Unreachable(InProcessTransport):
    """A connection that can be down."""

    is_down = False

    async def request(self, request: object) -> object:  # type: ignore[override]
        if self.is_down:
            raise ConnectionFailedError("connection refused")
        return await super().request(request)  # type: ignore[arg-type]


async def serve() -> tuple[ApiServer, Unreachable]:
    server = ApiServer(Store(), builtin.kinds(), VirtualClock())
    await server.start()
    return server, Unreachable(server, "manager")


async def define(server: ApiServer, *definitions: object) -> None:
    client = Client(InProcessTransport(server, "tester"))
    for definition in definitions:
        await client.apply(CUSTOM_RESOURCE_DEFINITIONS, definition, manager="tests")  # type: ignore[arg-type]


def in_another_thread(detection: GangDetection) -> Collection[str]:
    """Ask as the server of webhooks does."""
    found: list[Collection[str]] = []
    thread = threading.Thread(target=lambda: found.append(detection.served()))
    thread.start()
    thread.join()
    return found[0]


def test_what_is_served_is_detected_also_when_it_comes_or_goes_later() -> None:
    async def scenario() -> None:
        server, transport = await serve()
        await define(server, VOLCANO_DEFINITION)
        detection = GangDetection(Client(transport))
        async with detection.running():
            await asyncio.sleep(1)
            assert in_another_thread(detection) == {"volcano"}

            await define(server, COSCHEDULING_DEFINITION)
            await asyncio.sleep(PERIOD)
            assert in_another_thread(detection) == {"volcano", "coscheduling"}

            client = Client(InProcessTransport(server, "tester"))
            name = VOLCANO_DEFINITION["metadata"]["name"]
            await client.delete(CUSTOM_RESOURCE_DEFINITIONS, ObjectKey("", name))
            await asyncio.sleep(PERIOD)
            assert in_another_thread(detection) == {"coscheduling"}
        await server.close()

    virtualtime.run(scenario())


def test_before_the_first_answer_pods_are_refused_rather_than_left_without_their_group() -> None:
    """The StatefulSet controller creates them again in a moment; unmarked they would stay so for ever."""

    async def scenario() -> None:
        server, transport = await serve()
        transport.is_down = True
        detection = GangDetection(Client(transport))
        async with detection.running():
            await asyncio.sleep(0.5)
            assert not detection.is_ready
            with pytest.raises(DeniedError, match="not known yet"):
                detection.served()
            transport.is_down = False
            await asyncio.sleep(RETRY)
            assert detection.is_ready
            assert detection.served() == frozenset()
        await server.close()

    virtualtime.run(scenario())


def test_an_api_server_that_is_away_changes_nothing_of_what_is_known() -> None:
    async def scenario() -> None:
        server, transport = await serve()
        await define(server, VOLCANO_DEFINITION)
        detection = GangDetection(Client(transport))
        async with detection.running():
            await asyncio.sleep(1)
            transport.is_down = True
            await asyncio.sleep(3 * PERIOD)
            assert detection.served() == {"volcano"}
        await server.close()

    virtualtime.run(scenario())
