"""Tests that the shared model recovers after an outage of the API server or a suspension of the machine."""

import asyncio

import pytest
from msgspec.structs import replace
from tests.dashboardhouse import NAMESPACE, ServedDashboard, api_server
from tests.integration.clusters import objects

from kuberuntime.cache.reflector import TIMEOUT
from kuberuntime.client.client import Client
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.resources import LEADERWORKERSETS
from lwsctl.dashboard.address import Address, PageKind
from lwsctl.dashboard.livemodel import AGAIN, PATIENCE, LiveModel, run_model
from lwsctl.dashboard.subscriptions import Subscriptions
from lwsctl.dashboard.webserver import Dashboard
from lwsctl.diagnosis.observed import Commands
from lwsctl.model.leaderworkerset import View

pytestmark = pytest.mark.virtual_time


def lws(name: str) -> JSONObject:
    return objects.lws(name) | {"metadata": {"name": name, "namespace": NAMESPACE}}


@pytest.mark.parametrize("minutes", [1, 30])
async def test_the_picture_is_current_after_an_outage(minutes: int) -> None:
    """The watch connections closed silently, and their back-off is long after an outage of several minutes."""
    async with api_server() as transport:
        client = Client(transport)
        model = LiveModel(client, "", Commands())
        async with run_model(model), asyncio.timeout(minutes * 60 + TIMEOUT / 4):
            transport.is_down = True
            async with model.update_diagnoses():
                await model.wait_for(lambda: model.snapshot.connection_error or None)
            assert "the API server does not respond" in model.snapshot.connection_error
            await asyncio.sleep(minutes * 60)
            transport.is_down = False
            await client.create(LEADERWORKERSETS, lws("later"))
            await model.wait_for(lambda: (model.snapshot.views and not model.snapshot.connection_error) or None)


async def test_patience_grows_until_a_slow_server_answers() -> None:
    """A later diagnosis completes a diagnosis that exceeded the first time limit."""
    async with api_server() as transport:
        model = LiveModel(Client(transport), "", Commands())
        async with run_model(model), model.update_diagnoses(), asyncio.timeout(600):
            transport.seconds = 1.5 * PATIENCE
            await model.wait_for(lambda: model.snapshot.connection_error or None)
            assert f"no response within {PATIENCE:g} s" in model.snapshot.connection_error
            await model.wait_for(lambda: model.snapshot.connection_error == "" or None)


async def test_without_visitors_nothing_is_read() -> None:
    async with api_server() as transport:
        model = LiveModel(Client(transport), "", Commands())
        async with run_model(model):
            transport.is_down = True
            await asyncio.sleep(AGAIN * 3)
            assert model.snapshot.connection_error == ""


async def test_a_change_is_diagnosed_as_soon_as_it_is_shown() -> None:
    async with api_server() as transport:
        client = Client(transport)
        model = LiveModel(client, "", Commands())
        house = ServedDashboard(client, model, Dashboard(model, Subscriptions(model)), None, transport)
        await house.put_set("web", replicas=2, size=2)
        async with run_model(model), model.update_diagnoses():
            await asyncio.sleep(AGAIN * 1.7)  # no diagnosis is scheduled
            await house.crash("web-1")
            await asyncio.sleep(1)
            (diagnosis,) = model.snapshot.diagnoses.values()
            assert diagnosis.code == "LWS-E071"


class BrokenSets:
    """Replaces the followed workloads, and fails to display them."""

    def views(self) -> list[View]:
        raise RecursionError("maximum recursion depth exceeded")


async def test_failed_picture_is_marked_as_out_of_date() -> None:
    async with api_server() as transport:
        client = Client(transport)
        model = LiveModel(client, "", Commands())
        await client.create(LEADERWORKERSETS, lws("web"))
        async with run_model(model), model.update_diagnoses():
            hub, address = Subscriptions(model), Address(kind=PageKind.NOW)
            good, everything = model.snapshot, model.everything
            model.everything = BrokenSets()  # type: ignore[assignment]  # any error of a view
            model.refresh_snapshot()
            assert model.snapshot.views == good.views
            assert model.snapshot.last_response == good.now
            shown = str((await hub.channel(address)).shown)
            assert "the state is outdated, because it cannot be rendered: RecursionError" in shown
            assert f"{good.now:%H:%M:%S}" in shown
            model.everything = everything
            model.refresh_snapshot()
            assert model.snapshot.connection_error == ""


async def test_failed_page_is_marked_as_out_of_date() -> None:
    async with api_server() as transport:
        client = Client(transport)
        model = LiveModel(client, "", Commands())
        await client.create(LEADERWORKERSETS, lws("web"))
        async with run_model(model), model.update_diagnoses():
            hub, address = Subscriptions(model), Address(kind=PageKind.NOW)
            before = (await hub.channel(address)).shown
            model.snapshot = replace(model.snapshot, views=[7])
            after = (await hub.channel(address)).shown
            assert after["progressing"] == before["progressing"] != []
            assert "this page is outdated, because it cannot be rendered: AttributeError" in after["trouble"][0].html
            model.refresh_snapshot()
            assert (await hub.channel(address)).shown["trouble"] == []
