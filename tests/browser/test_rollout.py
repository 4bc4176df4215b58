"""A rollout in a real browser: pause, resume, undo, and its progress."""

import pytest
from tests.browser.conftest import Visiting, journey
from tests.dashboardhouse import NAMESPACE

from kuberuntime.objects.meta import ObjectKey
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS

pytestmark = pytest.mark.slow


def test_page_offers_to_pause_or_resume(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting(actions=True) as visit:
            await visit.house.put_set("web", replicas=2, size=2)
            await visit.house.shows(web_1_1="Running")
            await visit.go("sets/default/web/rollout")
            await visit.page.locator("button[data-verb=pause]").click()
            title = visit.page.locator("dialog[open] h2")
            await visit.page.locator("dialog[open] pre:has-text('dry run')").wait_for()
            assert await title.inner_text() == "lws -n default rollout pause web"
            await visit.page.click("dialog[open] >> text=Run this command")
            await visit.page.locator("dialog[open] pre:has-text('done')").wait_for()
            await visit.page.click("dialog[open] >> text=Close")
            assert await visit.page.locator("button[data-verb=resume]").is_hidden()
            paused = {"metadata": {"annotations": {labels.PAUSED_PARTITION: "0"}}}
            key = ObjectKey(NAMESPACE, "web")
            await visit.house.client.patch(LEADERWORKERSETS, key, paused, kind="merge", manager="test")
            await visit.page.locator("button[data-verb=resume]").wait_for()
            for verb in ("pause", "undo"):
                assert await visit.page.locator(f"button[data-verb={verb}]").is_hidden()
            assert await visit.page.locator("#steps-to-come").is_hidden(), "the plan is folded"
            assert visit.house.runner is not None
            plain = ["-n", "default", "rollout", "pause", "web"]
            assert visit.house.runner.calls == [[*plain, "--dry-run"], plain]

    journey(scenario)
