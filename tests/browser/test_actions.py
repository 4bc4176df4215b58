"""Tests in a real browser where actions are available, that only one runs at a time, and what they report."""

import asyncio
from collections.abc import Sequence

import pytest
from tests.browser.conftest import Visiting, journey

pytestmark = pytest.mark.slow


def test_action_is_busy_until_its_dry_run_and_shows_what_ends(visiting: Visiting) -> None:
    async def scenario() -> None:
        may_answer = asyncio.Event()
        calls: list[list[str]] = []

        async def run(arguments: Sequence[str]) -> tuple[bool, str]:
            calls.append(list(arguments))
            await may_answer.wait()
            return True, "web scaled"

        async with visiting(actions=True) as visit:
            await visit.house.put_set("web", replicas=4, size=2)
            await visit.house.shows(web_3_1="Running")
            visit.house.dashboard.runner = run
            await visit.go("sets/default/web")
            await visit.page.locator("#pulse.live").wait_for()
            await visit.page.fill("#scale-groups", "0")
            scale = visit.page.locator("#actions button[data-verb=scale]")
            await scale.dispatch_event("click")
            await scale.dispatch_event("click")
            await visit.page.locator("button[data-verb=scale]:disabled:has-text('Checking')").wait_for()
            may_answer.set()
            await visit.page.locator("dialog[open] .ends:has-text('All 4 groups are deleted')").wait_for()
            assert await visit.page.locator("dialog[open]").count() == 1
            assert len(calls) == 1
            await visit.page.click("dialog[open] >> text=Cancel")
            await visit.page.locator("button[data-verb=scale]:focus").wait_for()

    journey(scenario)


def test_pages_offer_only_what_applies(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting(actions=True) as visit:
            await visit.house.put_set("web", replicas=2, size=1)
            await visit.house.put_whole("chat", {"prefill": 2, "decode": 3}, size=1)
            await visit.house.shows(web_1="Running")
            await visit.go("sets/default/web?rank=1/0")
            await visit.page.locator("#pane button[data-verb]").wait_for()
            shown = await visit.page.locator("button[data-verb]:visible").all_inner_texts()
            assert shown == ["Scale …", "Restart all …", "Pause …", "Restart group 1 …"]
            await visit.go("disaggregated/default/chat")
            await visit.page.locator("#pulse.live").wait_for()
            assert await visit.page.input_value("#scale-groups") == "2", "the number of the first role"
            await visit.page.select_option("#scale-role", "decode")
            assert await visit.page.input_value("#scale-groups") == "3"
            await visit.go("sets/default/none")
            await visit.page.locator("#pulse.live").wait_for()
            assert await visit.page.locator("#actions").is_hidden()
            visit.complaints.clear()  # the browser logs the 404 response

    journey(scenario)
