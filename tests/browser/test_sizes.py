"""Tests with 300 LeaderWorkerSets that the Now page is short and small, and is restored after filtering."""

import gzip

import pytest
from tests.browser import fleet
from tests.browser.conftest import Visiting, journey

pytestmark = pytest.mark.slow

SETS = 300
SCREENS = {(1280, 800): 3, (390, 844): 6}
"""The maximum page length in screens, by screen size."""

MOST_BYTES = 60_000
"""The maximum size of the compressed page, in bytes."""


def test_three_hundred_sets_are_few_screens_and_bytes(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting(actions=True) as visit:
            await fleet.furnish(visit.house, SETS)
            rolling = sum(own.state == "rollout" for own in fleet.made(SETS))
            await visit.page.locator(f"a.progressing strong:text-is('{rolling}')").wait_for()
            for (width, height), screens in SCREENS.items():
                await visit.page.set_viewport_size({"width": width, "height": height})
                await visit.go()
                await visit.page.locator("#pulse.live").wait_for()
                length = await visit.page.evaluate("document.documentElement.scrollHeight")
                assert length <= screens * height, (width, length)
                assert await visit.page.locator(".line").count() == SETS
            answer = await visit.page.request.get(visit.house.base)
            assert len(gzip.compress(await answer.body(), 6)) <= MOST_BYTES
            await visit.go("?state=problems")
            problems = int(await visit.page.locator("a.problems strong").inner_text())
            assert await visit.page.locator(".line").count() == problems > 0

    journey(scenario)


def test_matrix_shows_thirty_two_ranks_in_one_row(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting(viewport={"width": 1280, "height": 800}) as visit:
            await visit.house.put_set("web", replicas=2, size=32)
            await visit.house.shows(web_1_31="Running")
            await visit.go("sets/default/web")
            tops = "[...document.querySelectorAll('[id=\"g/0\"] td[id]')].map((cell) => cell.offsetTop)"
            assert len(set(await visit.page.evaluate(tops))) == 1

    journey(scenario)


def test_header_is_one_line_with_a_menu_on_a_phone(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting(viewport={"width": 390, "height": 844}) as visit:
            await visit.go()
            await visit.page.locator("#pulse.live").wait_for()
            assert await visit.page.evaluate("document.querySelector('.top').offsetHeight") <= 48
            await visit.page.click("#menu summary")
            await visit.page.click("#menu nav >> text=Topology")
            await visit.page.wait_for_url("**/topology")
            await visit.page.click("#menu summary")
            await visit.page.keyboard.press("Escape")
            assert await visit.page.locator("#menu[open]").count() == 0

    journey(scenario)
