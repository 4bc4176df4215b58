"""Tests that the pages of one browser share an event stream, and that hidden pages do not update."""

import asyncio

import pytest
from tests.browser.conftest import Visiting, journey
from tests.dashboardhouse import until

pytestmark = pytest.mark.slow

TABS = 10
HIDE = """(hidden) => {
    Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});
    document.dispatchEvent(new Event('visibilitychange'));
}"""


def test_ten_pages_of_logs_share_one_stream(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting() as visit:
            await visit.house.put_set("web", replicas=1, size=1)
            await visit.house.put_set("other", replicas=1, size=1)
            await visit.house.crash("web-0")
            await visit.house.shows(web_0="CrashLoopBackOff", other_0="Running")
            visit.house.transport.said = b"2026-01-01T00:00:05Z step 3\n"
            pages = [visit.page, *[await visit.context.new_page() for _ in range(TABS - 1)]]
            for page in pages:
                await page.goto(visit.house.base + "sets/default/web/logs")
                await page.locator("#lines p:has-text('step 3')").first.wait_for()
                await page.locator("#pulse.live").wait_for()
            (stream,) = visit.house.dashboard.streams._open.values()
            assert len(stream.topics) == 2 * TABS, "the page and its lines"
            further = await visit.context.new_page()
            await further.goto(visit.house.base)
            await further.locator("#pulse.live").wait_for()
            await visit.house.crash("other-0")
            await further.locator("[id='s/default/other'] .verdict.crashing").wait_for()
            await pages[0].evaluate(HIDE, True)
            await pages[1].goto(visit.house.base + "topology")
            await pages[2].close()
            await until(lambda: len(stream.topics) == 2 * (TABS - 3) + 2, "the end of what nobody sees")
            for page in (*pages[3:], pages[1], further):
                await page.evaluate(HIDE, True)
            await until(lambda: not visit.house.dashboard.streams._open, "the end of the stream")
            await pages[0].evaluate(HIDE, False)
            await pages[0].locator("#pulse.live").wait_for()
            await asyncio.sleep(0.5)
            assert await pages[0].locator("#lines p").count() == 1, "no line is added again"

    journey(scenario)


def test_page_without_shared_workers_is_live(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting() as visit:
            await visit.context.add_init_script("delete globalThis.SharedWorker")
            await visit.go()
            await visit.page.locator("#pulse.live").wait_for()
            await visit.house.put_set("web", replicas=1, size=1)
            await visit.page.locator("[id='s/default/web']").wait_for()

    journey(scenario)
