"""Tests the number of bytes in the event stream of a page, in virtual time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.dashboardhouse import NAMESPACE, READY, ServedDashboard, api_server

from kuberuntime.client.client import Client
from kuberuntime.objects.meta import ObjectKey
from leaderworkerset.api.resources import LEADERWORKERSETS
from lwsctl.dashboard.address import Address, PageKind
from lwsctl.dashboard.channel import PageChannel
from lwsctl.dashboard.livemodel import LiveModel, run_model
from lwsctl.dashboard.subscriptions import Subscriptions
from lwsctl.dashboard.webserver import Dashboard
from lwsctl.diagnosis.observed import Commands

pytestmark = [pytest.mark.slow, pytest.mark.virtual_time]

WEB = ObjectKey(NAMESPACE, "web")
GROUPS = 60
SECONDS = 25.0
PENDING = {"phase": "Pending", "conditions": []}


@asynccontextmanager
async def looked_at(address: Address) -> AsyncIterator[tuple[ServedDashboard, list[bytes]]]:
    """Show the page of a LeaderWorkerSet with 60 groups of 2.

    Yield the dashboard, and the sent events of the stream.
    """
    async with api_server() as transport:
        client = Client(transport)
        model = LiveModel(client, "", Commands())
        house = ServedDashboard(client, model, Dashboard(model, Subscriptions(model)), None, transport)
        await house.put_set("web", replicas=GROUPS, size=2)
        sent: list[bytes] = []

        async def follow(channel: PageChannel) -> None:
            while True:
                last = channel.ident
                await channel.wait_for_change()
                sent.extend(channel.events_after(last))

        hub = house.dashboard.subscriptions
        async with run_model(model), asyncio.TaskGroup() as tasks, hub.subscribe(address) as channel:
            running = [tasks.create_task(hub.run()), tasks.create_task(follow(channel))]
            await asyncio.sleep(SECONDS)
            sent.clear()
            yield house, sent
            for task in running:
                task.cancel()


@pytest.mark.parametrize("kind", [PageKind.NOW, PageKind.SET, PageKind.ROLLOUT])
async def test_rolling_sixty_groups_costs_at_most_sixty_kilobytes(kind: PageKind) -> None:
    async with looked_at(Address(kind=kind, key=WEB)) as (house, sent):
        lws = await house.client.get(LEADERWORKERSETS, WEB)
        for group in range(GROUPS):
            for status in (PENDING, READY):
                await house.set_pod(f"web-{group}", status)
                await asyncio.sleep(SECONDS / GROUPS / 4)
                await house.set_pod(f"web-{group}-1", status)
                await house.put_status(lws, GROUPS - (status is PENDING))
                await asyncio.sleep(SECONDS / GROUPS / 4)
        await asyncio.sleep(1)
        assert 20 < len(sent) <= 3 * SECONDS, "at most two pictures in a second, and a diagnosis every two seconds"
        assert sum(map(len, sent)) <= 60_000


async def test_line_of_a_set_is_sent_without_what_did_not_change() -> None:
    async with looked_at(Address(kind=PageKind.NOW)) as (house, sent):
        await house.set_pod("web-7", PENDING)
        await asyncio.sleep(0.3)
        data = sent[0]
        assert data.count(b"s/default/web/groups") == 2, "the key and the HTML of the numbers"
        assert len(data) < 1200
