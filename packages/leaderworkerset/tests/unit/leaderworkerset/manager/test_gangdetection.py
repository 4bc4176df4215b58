"""Tests the detection of gang schedulers, including its requests, its initial state, and later changes."""

import asyncio
import threading
from collections.abc import Collection

import pytest
from testkit.virtualtime import VirtualClock
from tests.gangdefinitions import COSCHEDULING_DEFINITION, VOLCANO_DEFINITION

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request, Response
from kuberuntime.errors import ConnectionFailedError
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CUSTOM_RESOURCE_DEFINITIONS
from leaderworkerset.manager.gangdetection import PERIOD, RETRY, GangDetection
from localkube.apiserver import builtin
from localkube.apiserver.inprocess import InProcessTransport
from localkube.apiserver.server import ApiServer
from localkube.apiserver.storage.store import Store

pytestmark = pytest.mark.virtual_time


class Unreachable(InProcessTransport):
    """A connection that can be interrupted."""

    is_down = False

    async def request(self, request: Request) -> Response:
        if self.is_down:
            raise ConnectionFailedError("connection refused")
        return await super().request(request)


async def serve() -> tuple[ApiServer, Unreachable]:
    server = ApiServer(Store(), builtin.kinds(), VirtualClock())
    await server.start()
    return server, Unreachable(server, "manager")


async def define(server: ApiServer, *definitions: JSONObject) -> None:
    client = Client(InProcessTransport(server, "tester"))
    for definition in definitions:
        await client.apply(CUSTOM_RESOURCE_DEFINITIONS, definition, manager="tests")


def in_another_thread(detection: GangDetection) -> Collection[str]:
    """List the schedulers in the same way as the webhook server."""
    found: list[Collection[str]] = []
    thread = threading.Thread(target=lambda: found.append(detection.wait_for_providers()))
    thread.start()
    thread.join()
    return found[0]


async def test_gang_schedulers_are_detected_when_they_come_or_go() -> None:
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


async def test_detection_knows_nothing_before_the_first_answer() -> None:
    server, transport = await serve()
    transport.is_down = True
    detection = GangDetection(Client(transport))
    async with detection.running():
        await asyncio.sleep(0.5)
        assert not detection.is_ready
        transport.is_down = False
        async with asyncio.timeout(RETRY):
            await detection.wait_until_known()
        assert detection.wait_for_providers() == frozenset()
    await server.close()


async def test_unreachable_api_server_keeps_the_detected_schedulers() -> None:
    server, transport = await serve()
    await define(server, VOLCANO_DEFINITION)
    detection = GangDetection(Client(transport))
    async with detection.running():
        await asyncio.sleep(1)
        transport.is_down = True
        await asyncio.sleep(3 * PERIOD)
        assert detection.wait_for_providers() == {"volcano"}
    await server.close()
