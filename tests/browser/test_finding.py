"""Tests the search on all pages, the failed rank, and the first error in a real browser."""

import pytest
from tests.browser.conftest import Visiting, journey

pytestmark = pytest.mark.slow


def test_search_opens_a_rank_from_any_page(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting() as visit:
            await visit.house.put_set("web", replicas=3, size=2)
            await visit.house.put_set("other", replicas=1, size=1)
            await visit.house.shows(web_2_1="Running", other_0="Running")
            keys = visit.page.keyboard
            for start in ("topology", "causes/LWS-E036", "sets/default/other/history"):
                await visit.go(start)
                await keys.press("/")
                await visit.page.locator("#results .hint").wait_for()
                await keys.type("web/2/1")
                await visit.page.locator("#results a:has-text('web/2/1')").wait_for()
                await keys.press("ArrowDown")
                await keys.press("Enter")
                await visit.page.locator("#pane h2:has-text('2/1')").wait_for()
            await visit.go("sets/default/web")
            await keys.press("/")
            await keys.type("node-0")
            await visit.page.locator("#results a[href='topology?find=node-0']").click()
            await visit.page.locator("[id='n/node-0']").wait_for()
            await visit.page.locator("#pulse.live").wait_for()  # the scripts of the page are running
            assert await visit.page.input_value("#search") == "node-0"
            await keys.press("/")
            await keys.press("Escape")
            await visit.page.locator("#results").wait_for(state="hidden")

    journey(scenario)


def test_search_shows_no_hits_of_the_former_words(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting() as visit:
            for name in ("web", "other"):
                await visit.house.put_set(name, replicas=1, size=1)
            await visit.house.shows(web_0="Running", other_0="Running")
            await visit.go("topology")
            await visit.page.fill("#search", "web")
            await visit.page.locator("#results a:has-text('web')").first.wait_for()
            await visit.page.route("**/search?q=other", lambda route: route.abort())
            await visit.page.fill("#search", "other")
            assert await visit.page.locator("#results a").count() == 0
            await visit.page.keyboard.press("Enter")
            assert visit.page.url.endswith("/topology"), "Enter opens no former hit"
            await visit.page.unroute("**/search?q=other")
            await visit.page.fill("#search", "othe")
            await visit.page.locator("#results a:has-text('other')").first.wait_for()
            visit.complaints.clear()  # the browser logs the failed request

    journey(scenario)


def test_failed_rank_is_selected_without_the_focus(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting() as visit:
            await visit.house.put_set("web", replicas=2, size=3, ready=1)
            await visit.house.crash("web-1-2")
            await visit.house.crash("web-1", restarts=1)
            await visit.house.shows(web_1_2="CrashLoopBackOff", web_1="CrashLoopBackOff")
            visit.house.transport.logs = {
                "web-1": b"2026-01-01T00:00:05Z lost connection to rank 2\n",
                "web-1-2": b"2026-01-01T00:00:04Z RuntimeError: CUDA error\n",
            }
            await visit.go("sets/default/web")
            await visit.page.locator("#pane h2:has-text('1/2')").wait_for()
            assert await visit.focused() == ""
            assert "rank=" not in visit.page.url
            assert "RuntimeError: CUDA error" in await visit.page.locator("#pane .first").inner_text()
            await visit.go("sets/default/web/logs")
            await visit.page.locator("#lines p:has-text('RuntimeError')").wait_for()
            await visit.page.click("#chips [data-drop='1/2']")
            await visit.page.locator("#lines p:has-text('lost connection')").wait_for()
            await visit.page.click("#first-error")
            await visit.page.locator("#lines p.error:focus:has-text('RuntimeError')").wait_for()
            assert await visit.page.locator("#chips [data-drop='1/2']").count() == 1

    journey(scenario)
