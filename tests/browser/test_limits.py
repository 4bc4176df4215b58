"""Tests pages with large namespaces, with slow API servers, and without permission to read the evidence."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.browser.conftest import Visiting, journey
from tests.dashboardhouse import READY, ServedDashboard

from kuberuntime.client.transport import Request, Response
from kuberuntime.clock import SystemClock
from kuberuntime.objects import timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CORE_EVENTS

pytestmark = pytest.mark.slow

EVENTS = 2000
REFUSED = b'{"kind": "Status", "code": 403, "reason": "Forbidden", "message": "events is forbidden"}'


class Later(SystemClock):
    """A time one hour later, when each rank had enough time to start."""

    def now(self) -> datetime:
        return super().now() + timedelta(hours=1)


def event(house: ServedDashboard, number: int, reason: str, kind: str, name: str) -> JSONObject:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.{number}", "namespace": "default"},
        "involvedObject": {"kind": kind, "namespace": "default", "name": name},
        "type": "Normal",
        "reason": reason,
        "message": "",
        "lastTimestamp": timestamps.render(house.model.clock.now()),
    }


def test_last_hour_is_shown_among_two_thousand_events(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting() as visit:
            house = visit.house
            await house.put_set("web", replicas=1, size=2)
            for number in range(EVENTS):
                await house.client.create(CORE_EVENTS, event(house, number, "BackOff", "Pod", f"other-{number % 50}"))
            for number in range(2):
                await house.client.create(CORE_EVENTS, event(house, number, "RecreateGroup", "LeaderWorkerSet", "web"))
            await house.shows(web_0_1="Running")
            await visit.go("sets/default/web")
            lane = visit.page.locator("#timeline title:has-text('recreations: 2 events in the last hour')")
            await lane.wait_for(state="attached")
            assert await visit.page.locator("#timeline >> text=could not be read").count() == 0
            assert await visit.page.locator("#timeline title:has-text('failures: 0 ')").count() == 1

    journey(scenario)


def test_patience_with_a_slow_server_grows_until_it_answers(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting() as visit:
            house = visit.house
            await house.put_set("web", replicas=1, size=2, ready=0)
            await house.shows(web_0_1="Pending")
            house.model._patience = 0.5  # the first limit, so that the test does not wait for 10 seconds
            house.transport.seconds = 0.7
            for seconds in ("0.5", "1"):
                await visit.page.locator(f"#trouble:has-text('no response within {seconds} s')").wait_for()
            await visit.page.locator("#trouble p").wait_for(state="detached")
            assert house.transport.seconds == 0.7, "the server is as slow as before"

    journey(scenario)


def test_page_reports_evidence_that_could_not_be_read(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting() as visit:
            house = visit.house
            inner = house.transport.request

            async def refuse(request: Request) -> Response:
                return Response(403, {}, REFUSED) if request.path.endswith("/events") else await inner(request)

            house.model.clock = Later()
            transport: Any = house.transport
            transport.request = refuse
            await house.put_set("web", replicas=1, size=2, ready=0)
            await house.set_pod("web-0", READY)
            running = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
            status = {"name": "main", "image": "app:1", "imageID": "", "restartCount": 0, "ready": False}
            await house.set_pod("web-0-1", {"phase": "Running", "containerStatuses": [status | {"state": running}]})
            await house.shows(web_0="Running", web_0_1="Running")
            await visit.go("sets/default/web")
            cause = visit.page.locator("#cause")
            await cause.locator("text=evidence could not be read").first.wait_for()
            assert "no known cause" not in (await cause.inner_text()).lower()
            await cause.locator("a code").first.click()
            await visit.page.locator("h1:has-text('LWS-E')").wait_for()

    journey(scenario)
