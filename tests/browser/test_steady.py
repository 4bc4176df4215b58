"""Tests that focus and selection are preserved, and that the layout does not shift, while a page changes."""

import asyncio

import pytest
from tests.browser.conftest import Visiting, journey
from tests.dashboardhouse import ServedDashboard

pytestmark = pytest.mark.slow

SECONDS = 60
"""The duration of the observation, during which the page changes each second."""

WATCH = """() => {
    window.shift = 0;
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) window.shift += entry.value;
    }).observe({type: 'layout-shift', buffered: true});
}"""
SELECT = """() => {
    const range = document.createRange();
    range.selectNodeContents(document.querySelector('#title h1'));
    getSelection().removeAllRanges();
    getSelection().addRange(range);
}"""


async def change(house: ServedDashboard, second: int) -> None:
    """Change the cause, the rank states and the numbers on the page of a LeaderWorkerSet."""
    await house.crash("web-1-1", message=f"out of luck {second}", restarts=second)
    state = (
        {"phase": "Pending"}
        if second % 2
        else {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    )
    await house.set_pod("web-0-1", state)


async def start(house: ServedDashboard) -> None:
    """Create a LeaderWorkerSet whose last rank crashes."""
    await house.put_set("web", replicas=6, size=2, ready=1)
    await house.crash("web-1-1")
    await house.shows(web_0_1="Running", web_1_1="CrashLoopBackOff")
    await house.model.diagnose()


def test_focus_and_selection_are_kept_over_thirty_seconds(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting() as visit:
            await start(visit.house)
            await visit.go("sets/default/web")
            await visit.page.locator("#pane .first, #pane h3").first.wait_for()
            await visit.page.locator("button.copy").first.focus()
            focused = "document.activeElement.className + document.activeElement.tagName"
            before = await visit.page.evaluate(focused)
            await visit.page.evaluate(SELECT)
            for second in range(30):
                await change(visit.house, second)
                await asyncio.sleep(1)
                assert await visit.page.evaluate(focused) == before == "copyBUTTON", second
                assert await visit.page.evaluate("getSelection().toString()") == "web default", second

    journey(scenario)


def test_nothing_moves_on_a_set_page_in_a_minute(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting(viewport={"width": 1280, "height": 800}) as visit:
            await start(visit.house)
            await visit.go("sets/default/web")
            await visit.page.evaluate(WATCH)
            for second in range(SECONDS):
                await change(visit.house, second)
                await asyncio.sleep(1)
            assert await visit.page.evaluate("window.shift") < 0.05

    journey(scenario)


def test_plain_tables_are_tables(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting() as visit:
            await start(visit.house)
            for path in ("?as=table", "sets/default/web?as=table", "topology?as=table", "sets/default/web/rollout"):
                await visit.go(path)
                shown = await visit.page.evaluate(
                    "[...document.querySelectorAll('table.plain tbody')].map((one) => getComputedStyle(one).display)"
                )
                assert set(shown) == {"table-row-group"}, path

    journey(scenario)
