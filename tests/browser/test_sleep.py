"""A page after the machine slept: its stream is opened again, although no error closed it."""

import pytest
from tests.browser.conftest import Visiting, journey

pytestmark = pytest.mark.slow


def test_a_page_opens_its_stream_again_after_sleep(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting() as visit:
            page = visit.page
            await page.clock.install()
            await visit.go()
            await page.locator("#pulse.live").wait_for()
            async with page.expect_request(lambda request: "stream=" in request.url) as opening:
                await page.clock.fast_forward(60_000)
            state = (await opening.value).url.partition("stream=")[2]
            assert state == await page.get_attribute("body", "data-ident"), "it continues from the state of the page"
            await page.locator("#pulse.live").wait_for()
            await visit.house.put_set("later", replicas=1, size=1)
            await page.locator("[id='s/default/later']").wait_for()

    journey(scenario)
