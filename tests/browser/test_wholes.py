"""Tests the rollout, logs and history of all roles on the pages of a DisaggregatedSet."""

import pytest
from msgspec.structs import replace
from tests.browser.conftest import Visiting, journey
from tests.browser.pictures import records
from tests.dashboardhouse import until

from kuberuntime.objects.meta import ObjectKey
from leaderworkerset.api.episode import Episode

pytestmark = pytest.mark.slow


def test_disaggregated_set_has_the_pages_of_a_set(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting() as visit:
            house, page = visit.house, visit.page

            async def recorded(key: ObjectKey) -> list[Episode]:
                return [replace(record, lws=key.name) for record in records(key, house.model.clock.now())]

            house.model.read_episodes = recorded
            house.transport.said = b"2026-01-01T00:00:05Z step 3\n"
            await house.put_whole("chat", {"prefill": 2, "decode": 3}, size=2)
            await until(lambda: house.model.snapshot.sets and len(house.states) == 10, "all pods")
            await visit.go("disaggregated/default/chat")
            tabs = page.locator("header + nav.tabs")
            await tabs.locator("text=Rollout").click()
            await page.locator("[id='r/prefill'] p:has-text('2 of 2 groups')").wait_for()
            await page.locator("[id='r/decode'] p:has-text('3 of 3 groups')").wait_for()
            assert await page.locator("[id='r/decode'] .marks i.ready").count() == 3
            for pod in (name for name in house.states if name.endswith("-1-1")):
                await house.crash(pod)
            await page.locator("[id='r/decode'] p:has-text('2 of 3 groups')").wait_for()
            await tabs.locator("text=Logs").click()
            await page.locator("#lines p:has-text('decode/1/1 step 3')").wait_for()
            await page.click("#chips >> text=+ prefill")
            await page.locator("#lines p:has-text('prefill/1/1 step 3')").wait_for()
            assert await page.locator("#lines p:has-text('decode/0/0')").count() == 0
            await tabs.locator("text=History").click()
            await page.locator("#rows strong:has-text('4 × main')").wait_for()  # noqa: RUF001
            await page.click("#rows >> text=decode/3#2")
            await page.locator("h1 small:has-text('failure 3#2')").wait_for()

    journey(scenario)
