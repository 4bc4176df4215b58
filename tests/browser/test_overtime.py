"""Tests the status over time. A crash loop is never displayed as healthy, or a slow start as failed."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from tests.browser.conftest import Visiting, journey
from tests.dashboardhouse import NAMESPACE, ServedDashboard
from tests.integration.clusters import objects

from kuberuntime.objects import timestamps
from kuberuntime.objects.meta import JSONObject, ObjectKey
from leaderworkerset.api.resources import LEADERWORKERSETS

pytestmark = pytest.mark.slow

WATCHED = timedelta(minutes=3)
RUN, PAUSE = 2, 3
"""The run time of the container and the back-off, in seconds."""

START = 60
"""The time until a server is ready, in seconds."""

RECORD = """(selector) => {
    window.seen = [];
    const note = () => document.querySelectorAll(selector).forEach((one) => {
        const words = one.className;
        if (window.seen.at(-1) !== words) window.seen.push(words);
    });
    new MutationObserver(note).observe(document.body, {subtree: true, childList: true, attributes: true});
    note();
}"""
"""Records each class of an element that the page displays, even briefly."""

SHIFT = """() => {
    window.shift = 0;
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) window.shift += entry.value;
    }).observe({type: 'layout-shift', buffered: true});
}"""


def container(restarts: int, state: JSONObject, *, is_ready: bool, last: JSONObject | None = None) -> JSONObject:
    status: JSONObject = {"name": "main", "image": "app:1", "imageID": "", "restartCount": restarts}
    return status | {"ready": is_ready, "started": is_ready, "state": state, "lastState": last or {}}


async def write(house: ServedDashboard, pod: str, status: JSONObject, *, is_ready: bool) -> None:
    """Write the status of a pod with one container, and the status of its LeaderWorkerSet."""
    ready = {"type": "Ready", "status": str(is_ready), "lastTransitionTime": timestamps.render(house.model.clock.now())}
    await house.set_pod(pod, {"phase": "Running", "conditions": [ready], "containerStatuses": [status]})
    lws = await house.client.get(LEADERWORKERSETS, ObjectKey(NAMESPACE, pod.rpartition("-")[0]))
    await house.put_status(lws, int(is_ready))


async def crash_again(house: ServedDashboard, restarts: int) -> None:
    """Simulate a container that exits with code 1 after two seconds, and wait before it starts again."""
    begin = house.model.clock.now()
    running = {"running": {"startedAt": timestamps.render(begin)}}
    end = {"exitCode": 1, "reason": "Error", "startedAt": timestamps.render(begin)}
    before = {"terminated": end | {"finishedAt": timestamps.render(begin)}} if restarts else {}
    await write(house, "web-0", container(restarts, running, is_ready=True, last=before), is_ready=True)
    await asyncio.sleep(RUN)
    last = {"terminated": end | {"finishedAt": timestamps.render(house.model.clock.now())}}
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}}
    await write(house, "web-0", container(restarts, waiting, is_ready=False, last=last), is_ready=False)
    await asyncio.sleep(PAUSE)


def test_crash_loop_of_two_seconds_is_never_healthy(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting(seconds=2 * WATCHED.total_seconds(), viewport={"width": 1280, "height": 800}) as visit:
            for name in ("web", "other"):
                await visit.house.put_set(name, replicas=1, size=1)
            await crash_again(visit.house, 0)
            await crash_again(visit.house, 1)
            await visit.go()
            await visit.page.locator("[id='cause/LWS-E071'] [id='s/default/web']").wait_for()
            await visit.page.evaluate(RECORD, "[id='s/default/web'] .verdict")
            await visit.page.evaluate(SHIFT)
            pages: Any = await visit.context.new_page()
            await pages.goto(visit.house.base + "sets/default/web")
            await pages.locator(".verdict.crashing").first.wait_for()
            await pages.evaluate(RECORD, "#state .verdict")
            for restarts in range(2, 2 + int(WATCHED.total_seconds()) // (RUN + PAUSE)):
                await crash_again(visit.house, restarts)
            for page in (visit.page, pages):
                assert await page.evaluate("window.seen") == ["verdict crashing"]
            assert await visit.page.evaluate("window.shift") < 0.05

    journey(scenario)


def test_server_that_starts_for_a_minute_is_never_red(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting() as visit:
            own = objects.lws("web", replicas=1, size=1) | {"metadata": {"name": "web", "namespace": NAMESPACE}}
            await visit.house.client.create(LEADERWORKERSETS, own)
            probe = {"exec": {"command": ["true"]}, "periodSeconds": 5, "failureThreshold": 30}
            await visit.house.put_pod("web", 0, 0, is_ready=False, startupProbe=probe, readinessProbe=probe)
            await visit.house.shows(web_0="Pending")
            running = {"running": {"startedAt": timestamps.render(visit.house.model.clock.now())}}
            await write(visit.house, "web-0", container(0, running, is_ready=False), is_ready=False)
            await visit.go("sets/default/web")
            await visit.page.locator(".verdict.starting").first.wait_for()
            await visit.page.evaluate(RECORD, "#state .verdict, #grid td[id], section.why")
            for _ in range(START):
                await visit.house.model.diagnose()
                await asyncio.sleep(1)
            await write(visit.house, "web-0", container(0, running, is_ready=True), is_ready=True)
            await visit.page.locator("#state .verdict.healthy").wait_for()
            seen = " ".join(await visit.page.evaluate("window.seen"))
            assert "starting" in seen
            for word in ("problem", "crashing", "stuck", "unknown"):
                assert word not in seen, seen

    journey(scenario)
