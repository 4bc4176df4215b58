"""Tests the manager in the process of a local cluster."""

import asyncio
import base64
import ssl
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest

from kuberuntime.client.client import Client
from kuberuntime.clock import SystemClock
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import VALIDATING_WEBHOOK_CONFIGURATIONS
from leaderworkerset.manager import lwsmanager
from leaderworkerset.webhooks import configurations
from localkube.apiserver import builtin
from localkube.apiserver.inprocess import InProcessTransport
from localkube.apiserver.server import ApiServer
from localkube.apiserver.storage.store import Store


class WrongClock(SystemClock):
    """A clock that is ahead of or behind the real time."""

    def __init__(self, days: float) -> None:
        self._ahead = timedelta(days=days)

    def now(self) -> datetime:
        return datetime.now(UTC) + self._ahead


@pytest.mark.parametrize("days", [400, 0, -400])
async def test_local_webhooks_are_trusted_after_a_clock_change(days: float) -> None:
    clock = WrongClock(days)
    server = ApiServer(Store(), builtin.kinds(), clock)
    await server.start()
    client = Client(InProcessTransport(server, "test"))
    async with lwsmanager.webhooks(client, clock):
        key = ObjectKey("", configurations.VALIDATING_NAME)
        found = await client.get(VALIDATING_WEBHOOK_CONFIGURATIONS, key)
        called = found["webhooks"][0]["clientConfig"]
        authority = base64.b64decode(called["caBundle"]).decode()
        url = urlsplit(called["url"])
        trusting = ssl.create_default_context(cadata=authority)
        assert trusting.verify_mode == ssl.CERT_REQUIRED
        _, writer = await asyncio.open_connection(url.hostname, url.port, ssl=trusting)
        writer.close()
        await writer.wait_closed()
    await server.close()
