"""The shared model recovers after the API server was unavailable, or the machine slept."""

import asyncio

import pytest
from tests.dashboardhouse import NAMESPACE, House, api_server
from tests.integration.clusters import objects

from kuberuntime.cache.watching import TIMEOUT
from kuberuntime.client.client import Client
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.dashboard.hub import Hub
from leaderworkerset.dashboard.livemodel import AGAIN, LiveModel, live
from leaderworkerset.dashboard.webserver import Dashboard
from leaderworkerset.diagnosis.observed import Commands

pytestmark = pytest.mark.virtual_time


def lws(name: str) -> JSONObject:
    return objects.lws(name) | {"metadata": {"name": name, "namespace": NAMESPACE}}


@pytest.mark.parametrize("minutes", [1, 30])
async def test_the_picture_is_current_after_an_outage(minutes: int) -> None:
    """The connections of the watches ended silently, and their back-off is long after an outage of minutes."""
    async with api_server() as transport:
        client = Client(transport)
        model = LiveModel(client, "", Commands())
        async with live(model), asyncio.timeout(minutes * 60 + TIMEOUT / 4):
            transport.is_down = True
            async with model.looking():
                await model.until(lambda: model.picture.trouble or None)
            assert "the API server does not answer" in model.picture.trouble
            await asyncio.sleep(minutes * 60)
            transport.is_down = False
            await client.create(LEADERWORKERSETS, lws("later"))
            await model.until(lambda: model.picture.views or None)
            assert model.picture.trouble == ""


async def test_without_visitors_nothing_is_read() -> None:
    async with api_server() as transport:
        model = LiveModel(Client(transport), "", Commands())
        async with live(model):
            transport.is_down = True
            await asyncio.sleep(AGAIN * 3)
            assert model.picture.trouble == ""


async def test_a_change_is_diagnosed_as_soon_as_it_is_shown() -> None:
    async with api_server() as transport:
        client = Client(transport)
        model = LiveModel(client, "", Commands())
        house = House(client, model, Dashboard(model, Hub(model)), None, transport)
        await house.put_set("web", replicas=2, size=2)
        async with live(model), model.looking():
            await asyncio.sleep(AGAIN * 1.7)  # no diagnosis is due
            await house.crash("web-1")
            await asyncio.sleep(1)
            (diagnosis,) = model.picture.diagnoses.values()
            assert diagnosis.code == "LWS-E071"
