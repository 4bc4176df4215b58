"""Tests login and logout of a shared dashboard in a real browser."""

from importlib import resources
from typing import Any

import pytest
from tests.browser.conftest import LIMIT, chromium, journey, playwright
from tests.dashboardhouse import Tokens, open_house

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_continues_after_an_expired_login(scheme: str) -> None:
    source = (resources.files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")
    tokens = Tokens()

    async def log_in(page: Any, token: str) -> None:
        await page.fill("#token", token)
        await page.click("button")

    async def scenario() -> None:
        async with open_house(tokens=tokens) as house, playwright.async_playwright() as driver:
            await house.put_set("web", replicas=2, size=1)
            await house.shows(web_1="Running")
            browser = await driver.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
            context = await browser.new_context(color_scheme=scheme, viewport={"width": 390, "height": 800})
            context.set_default_timeout(LIMIT)
            page = await context.new_page()
            await page.goto(house.base + "sets/default/web")
            await page.evaluate(source)
            found: Any = await page.evaluate("axe.run()")
            assert [one["id"] for one in found["violations"]] == []
            assert await page.evaluate("document.documentElement.scrollWidth") <= 390
            await log_in(page, "wrong")
            await page.locator("[role=alert]:has-text('rejected this token')").wait_for()
            await log_in(page, "token-of-ann")
            await page.wait_for_url(house.base)
            await page.goto(house.base + "sets/default/web")
            await page.locator("#pulse.live").wait_for()
            assert house.dashboard.login_page is not None
            house.dashboard.login_page.sessions._sessions.clear()
            house.dashboard.streams.close()
            async with context.expect_page() as opening:
                await page.click("#connection a")
            other = await opening.value
            await log_in(other, "token-of-bob")
            await other.wait_for_url(house.base)
            await house.crash("web-1")
            await page.locator("[id='c/1/0'].problem").wait_for()
            await page.locator("#connection").wait_for(state="detached")
            await browser.close()

    journey(scenario)
