"""Starts a headless Chromium for each test. LWS_CHROMIUM can replace the executable of Debian.

Without a Chromium, the tests are skipped.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pytest
from tests.dashboardhouse import ServedDashboard, open_house

playwright = pytest.importorskip("playwright.async_api", reason="playwright is not installed: `make dev`")

LONGEST = 120.0
"""The timeout of a scenario, in seconds."""

LIMIT = 30_000.0
"""The timeout of a condition in the browser, in milliseconds."""


@dataclass
class Visit:
    """A dashboard page in a browser.

    `complaints` contains script errors and violations of the content security policy.
    """

    house: ServedDashboard
    context: Any
    page: Any
    complaints: list[str] = field(default_factory=list)

    async def go(self, path: str = "") -> None:
        """Open a page, and wait until its event stream is open."""
        await self.page.goto(self.house.base + path)

    async def focused(self) -> str:
        """Return the `id` of the focused element."""
        return str(await self.page.evaluate("document.activeElement.id"))


Visiting: TypeAlias = Callable[..., AbstractAsyncContextManager[Visit]]


def chromium() -> str:
    """Return the browser executable. Skip the test if no browser is installed."""
    found = os.environ.get("LWS_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not found:
        pytest.skip(
            "no chromium on this machine: install it (Debian: apt-get install chromium), or name it in LWS_CHROMIUM"
        )
    return found


@pytest.fixture
def visiting() -> Visiting:
    """Return a function that opens the link of a new dashboard in a new browser."""
    program = chromium()

    @asynccontextmanager
    async def visit(*, actions: bool = False, seconds: float = LONGEST, **options: Any) -> AsyncIterator[Visit]:
        async with open_house(actions=actions, seconds=seconds) as house, playwright.async_playwright() as driver:
            browser = await driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
            try:
                context = await browser.new_context(**options)
                context.set_default_timeout(LIMIT)
                page = await context.new_page()
                found = Visit(house, context, page)
                page.on("pageerror", lambda error: found.complaints.append(str(error)))
                page.on("console", lambda said: found.complaints.extend([said.text] if said.type == "error" else []))
                await page.goto(house.dashboard.link)
                await page.wait_for_url(house.base)
                yield found
                assert found.complaints == []
            finally:
                await browser.close()

    return visit


def journey(scenario: Callable[[], Coroutine[None, None, None]]) -> None:
    """Run a scenario until it completes."""
    asyncio.run(scenario())
