"""Tests the pause, resume, undo, and progress of a rollout in a real browser."""

import pytest
from tests.browser.conftest import Visiting, journey
from tests.dashboardhouse import NAMESPACE, READY
from tests.integration.clusters import objects

from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import STATEFULSETS
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


def test_picture_of_a_finished_rollout_equals_its_number(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting() as visit:
            await visit.house.put_set("web", replicas=6, size=1, ready=5)
            labeled = {labels.NAME: "web", labels.TEMPLATE_REVISION_HASH: "r1"}
            spec = {"replicas": 6, "serviceName": "web", "selector": {"matchLabels": labeled}}
            template = {"metadata": {"labels": labeled}, "spec": objects.pod_template()["spec"]}
            metadata = {"name": "web", "namespace": NAMESPACE, "labels": labeled}
            leaders = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata}
            await visit.house.client.create(STATEFULSETS, leaders | {"spec": spec | {"template": template}})
            await visit.house.shows(web_5="Pending")
            await visit.go("sets/default/web/rollout")
            for done, height in ((5, 17), (6, 0)):
                picture = visit.page.locator(f"svg.course title:has-text('and {done} are ready')")
                await picture.wait_for(state="attached")
                assert await visit.page.locator(".marks i.ready").count() == done
                assert f"{done} done" in await visit.page.locator(".legend").inner_text()
                outline = await visit.page.locator("svg.course path.done").get_attribute("d")
                assert outline is not None
                assert outline.endswith(f"V{height}H60V100Z"), "the picture ends with the number of ready groups"
                await visit.house.set_pod("web-5", READY)
                lws = await visit.house.client.get(LEADERWORKERSETS, ObjectKey(NAMESPACE, "web"))
                await visit.house.put_status(lws, 6)
            await visit.page.locator("#rollout-title p:has-text('Complete: 6/6 groups')").wait_for()

    journey(scenario)
