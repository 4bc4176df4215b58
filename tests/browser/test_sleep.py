"""Tests a page whose server does not respond, for example after the machine was suspended.

The page reports it, and reconnects.
"""

import time

import pytest
from tests.browser.conftest import Visiting, journey

pytestmark = pytest.mark.slow

FROZEN = 16
"""The time without a response in seconds, during which two heartbeats are missed."""

RECORDED = """() => {
    const pulse = document.getElementById('pulse');
    window.states = [];
    new MutationObserver(() => window.states.push(...pulse.classList)).observe(pulse, {attributes: true});
}"""


def test_page_of_a_frozen_server_is_not_live_and_recovers(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting() as visit:
            await visit.go()
            await visit.page.locator("#pulse.live").wait_for()
            await visit.page.evaluate(RECORDED)
            time.sleep(FROZEN)  # noqa: ASYNC251 - it stops the server, which runs in this loop
            await visit.page.locator("#pulse.live").wait_for()
            assert "lost" in await visit.page.evaluate("window.states")
            await visit.house.put_set("later", replicas=1, size=1)
            await visit.page.locator("[id='s/default/later']").wait_for()

    journey(scenario)
