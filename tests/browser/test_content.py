"""Tests commands, container output, screenshots, counts and causes on pages in a browser."""

from datetime import timedelta

import pytest
from msgspec.structs import replace
from tests.browser import fleet, pictures
from tests.browser.conftest import Visiting, journey
from tests.unit.lwsctl.cli.views.test_episodetable import FULL

from kuberuntime.objects import timestamps
from kuberuntime.objects.meta import ObjectKey
from leaderworkerset.api.episode import Episode
from lwsctl.diagnosis.catalogue import BY_CODE, NO_CAUSE
from lwsctl.diagnosis.observed import Commands

pytestmark = pytest.mark.slow

REVERSED = "\u202egnitset"
STAMP = "2026-01-01T00:00:05Z"
PRINTED = f"{STAMP} \x1b[31mRuntimeError: no GPU\x1b[0m\n{STAMP}  10%|#  |\r 90%|###|\n{STAMP} {REVERSED}\n".encode()


def test_copied_commands_address_the_shown_cluster(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting(permissions=["clipboard-read", "clipboard-write"]) as visit:
            visit.house.model.commands = Commands(lws="lws --local=dev", kubectl="")
            visit.house.model.refresh_snapshot()
            for path, command in (
                ("", "lws --local=dev apply -f FILE.yaml"),
                ("sets/default/none", "lws --local=dev -n default get"),
            ):
                await visit.go(path)
                await visit.page.locator("button[data-copy]").first.click()
                await visit.page.locator("button:has-text('Copied')").wait_for()
                assert await visit.page.evaluate("navigator.clipboard.readText()") == command
            visit.complaints.clear()  # the browser logs the 404 response

    journey(scenario)


def test_texts_of_programs_change_no_words_of_the_page(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting() as visit:
            await visit.house.put_set("web", replicas=1, size=1, ready=0)
            await visit.house.crash("web-0", message=REVERSED)
            await visit.house.shows(web_0="CrashLoopBackOff")
            await visit.house.model.diagnose()
            visit.house.transport.said = PRINTED
            for path in ("", "sets/default/web", "sets/default/web?as=table"):
                await visit.go(path)
                await visit.page.locator("text=gnitset").first.wait_for()
                assert "\u202e" not in await visit.page.content(), path
            await visit.go("sets/default/web/logs?rank=0/0")
            await visit.page.locator("#lines p.error:has-text('RuntimeError: no GPU')").wait_for()
            lines = await visit.page.locator("#lines").inner_text()
            assert "\x1b" not in lines
            assert "90%" in lines
            assert "10%" not in lines, "of a progress bar only the last state"
            assert "\u202e" not in lines

    journey(scenario)


def test_rollout_names_its_change_and_counts_every_group(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting() as visit:
            await visit.house.put_set("web", replicas=6, size=4)
            await pictures.roll(visit.house, "web", groups=6)
            await visit.house.shows(web_5_3="Running")
            await visit.go("sets/default/web/rollout")
            title = visit.page.locator("#rollout-title h2")
            assert await title.inner_text() == "Revision 1 → 2: vllm-openai:v0.10.2 → vllm-openai:v0.11.0"
            assert await visit.page.locator(".marks i").count() == 6
            words = await visit.page.locator(".course title").text_content()
            assert words.startswith("of 6 groups, 2 were updated to the latest revision and 1 are ready")

    journey(scenario)


def test_equal_failures_are_one_row_and_count_once(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting() as visit:
            await visit.house.put_set("web", replicas=1, size=1)
            await visit.house.shows(web_0="Running")
            moment = timestamps.render(visit.house.model.clock.now() - timedelta(minutes=5))
            records = [
                replace(
                    FULL,
                    lws="web",
                    namespace="default",
                    number=number,
                    time=moment,
                    failure=f"out of memory at {number}",
                )
                for number in range(1, 10)
            ]

            async def recorded(_: ObjectKey) -> list[Episode]:
                return records

            visit.house.model.read_episodes = recorded
            await visit.go("sets/default/web")
            await visit.page.locator(".lanes :text-is('Failures 9')").wait_for()
            await visit.go("sets/default/web/history")
            rows = visit.page.locator("tbody tr")
            assert await rows.count() == 1
            assert await rows.locator("strong").inner_text() == "9 × out of memory at 9"  # noqa: RUF001

    journey(scenario)


def test_topology_has_every_set_and_square(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting() as visit:
            await fleet.furnish(visit.house, 60)
            await visit.go("topology")
            assert await visit.page.locator("#sets option").count() == 61
            assert await visit.page.locator(".rack li").count() > fleet.NODE_GPUS
            await visit.page.select_option("#sets", f"{fleet.NAMES[0]}/llama-3-70b-00")
            await visit.page.wait_for_url("**/topology?set=prod%2Fllama-3-70b-00")
            await visit.page.locator("#fit-words").wait_for()
            assert await visit.page.locator("rect.s0").count() > 0
            assert await visit.page.locator(".rack h2 b").count() == await visit.page.locator(".rack").count()

    journey(scenario)


def test_every_cause_has_a_page(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting() as visit:
            for code in (NO_CAUSE.code, *list(BY_CODE)[::20]):
                answer = await visit.page.request.get(f"{visit.house.base}causes/{code}")
                assert answer.status == 200, code

    journey(scenario)


def test_complete_sets_are_a_number_of_their_own(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting() as visit:
            await fleet.furnish(visit.house, 10)
            await visit.go("?state=complete")
            line = visit.page.locator(".line")
            await line.first.wait_for()  # a set moves to a different section at most once every ten seconds
            assert await line.count() == 1
            words = await line.inner_text()
            assert "Complete" in words
            assert " 2/2" in words
            assert await visit.page.locator("a.complete strong").inner_text() == "1"

    journey(scenario)
