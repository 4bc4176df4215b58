"""Tests the content, updates, reconnection, keyboard navigation and security of the dashboard in a browser.

Any error of a script, and anything that the content policy refuses, fails the test (`conftest.py`).
"""

import asyncio
from importlib import resources
from typing import Any

import pytest
from aiohttp import web
from tests.browser.conftest import Visit, Visiting, journey
from tests.dashboardhouse import NAMESPACE
from tests.unit.lwsctl.cli.views.test_episodetable import FULL

from kuberuntime.objects.meta import ObjectKey
from kuberuntime.serving.bindaddresses import Address
from kuberuntime.serving.serving import Listener
from leaderworkerset.api.episode import Episode
from leaderworkerset.api.resources import LEADERWORKERSETS
from lwsctl.dashboard.staticfiles import directory

pytestmark = pytest.mark.slow

PAGES = (
    "",
    "?as=table",
    "sets/default/broken",
    "sets/default/broken?by=node",
    "sets/default/web/rollout",
    "sets/default/web/logs",
    "sets/default/web/history",
    "sets/default/web/history/0/3",
    "sets/default/web/history/0/3?with=0/3",
    "topology",
    "topology?set=default/web",
    "topology?as=table",
    "?state=problems",
)


async def recorded(_: ObjectKey) -> list[Episode]:
    """Return one recorded failure."""
    return [FULL]


async def furnish(visit: Visit) -> None:
    """Create a healthy LeaderWorkerSet, and another LeaderWorkerSet whose leader crashes."""
    await visit.house.put_set("web", replicas=3, size=2)
    await visit.house.put_set("broken", replicas=1, size=2, ready=0)
    await visit.house.crash("broken-0")
    visit.house.model.read_episodes = recorded
    await visit.house.shows(web_2_1="Running", broken_0="CrashLoopBackOff", broken_0_1="Pending")


def test_change_is_shown_without_a_reload_and_announced(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting() as visit:
            await visit.house.put_set("web", replicas=2, size=2)
            line = visit.page.locator("[id='s/default/web']")
            await line.locator(".verdict.healthy").wait_for()
            await visit.house.crash("web-1")
            await line.locator(".verdict.crashing").wait_for()
            await visit.page.locator("#live:has-text('LWS-E071')").wait_for(state="attached")
            await visit.page.locator("[id='cause/LWS-E071'] [id='s/default/web']").wait_for()

    journey(scenario)


def test_token_leaves_the_address_and_the_cookie_is_hidden(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting() as visit:
            assert "token" not in visit.page.url
            assert await visit.page.evaluate("document.cookie") == ""
            assert await visit.page.evaluate("history.length") <= 2
            other = await visit.context.browser.new_context()
            page = await other.new_page()
            answer = await page.goto(visit.house.dashboard.link)
            assert answer.status == 403
            answer = await page.goto(visit.house.base)
            assert answer.status == 403

    journey(scenario)


def test_chosen_ranks_stay_after_a_complete_update(visiting: Visiting) -> None:
    """The new state is sent by a different stream, as after more changes than the server stores."""

    async def scenario() -> None:
        async with visiting() as visit:
            await furnish(visit)
            await visit.go("sets/default/web/logs")
            await visit.page.fill("#choice", "2/1, 0/*")
            await visit.page.press("#choice", "Enter")
            chips = visit.page.locator("#chips button[data-drop]")
            assert await chips.all_inner_texts() == ["2/1 ×", "0/* ×"]  # noqa: RUF001
            port = visit.house.dashboard.port
            await visit.house.dashboard.close()
            await visit.page.locator("#connection").wait_for()
            visit.house.dashboard.subscriptions._opened.clear()
            await visit.house.put_pod("web", 3, 0)
            await visit.house.dashboard.listen(port)
            await visit.page.locator("#pulse.live").wait_for()
            assert await chips.count() == 2
            await chips.first.click()
            assert visit.page.url.endswith("?rank=0%2F*")
            visit.complaints.clear()  # the browser logs the rejected connection

    journey(scenario)


def test_page_resumes_after_an_outage_without_losing_a_change(visiting: Visiting) -> None:
    """Connections are closed and the port is unavailable while pods change.

    Then the page must reconnect without an action.
    """

    async def scenario() -> None:
        async with visiting() as visit:
            await furnish(visit)
            await visit.go("sets/default/web")
            await visit.page.locator("[title='2/1 ready']").wait_for()
            port = visit.house.dashboard.port
            await visit.house.dashboard.close()
            await visit.page.locator("#connection").wait_for()
            await visit.house.crash("web-2-1")
            await visit.house.crash("web-0-1")
            await visit.house.shows(web_2_1="CrashLoopBackOff", web_0_1="CrashLoopBackOff")
            await visit.house.dashboard.listen(port)
            await visit.page.locator("[id='c/2/1'].problem").wait_for()
            await visit.page.locator("[id='c/0/1'].problem").wait_for()
            await visit.page.locator("#connection").wait_for(state="detached")
            visit.complaints.clear()  # the browser logs the rejected connection

    journey(scenario)


def test_hidden_page_requests_nothing_until_it_is_shown(visiting: Visiting) -> None:
    hide = """(hidden) => {
        Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});
        document.dispatchEvent(new Event('visibilitychange'));
    }"""

    async def scenario() -> None:
        async with visiting() as visit:
            await furnish(visit)
            await visit.go("sets/default/web")
            await visit.page.locator("[title='1/1 ready']").wait_for()
            await visit.page.evaluate(hide, True)
            await visit.house.crash("web-1-1")
            await visit.house.shows(web_1_1="CrashLoopBackOff")
            await asyncio.sleep(0.5)
            assert await visit.page.locator("[title='1/1 ready']").count() == 1
            await visit.page.evaluate(hide, False)
            await visit.page.locator("[id='c/1/1'].problem").wait_for()

    journey(scenario)


def test_pages_can_be_used_by_keyboard_only(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting() as visit:
            await furnish(visit)
            await visit.go()
            keys = visit.page.keyboard
            await visit.page.locator("[id='s/default/broken']").wait_for()
            await keys.press("/")
            assert await visit.focused() == "search"
            await keys.type("brok")
            await visit.page.locator("[id='s/default/web']").wait_for(state="hidden")
            for _ in range(10):
                await keys.press("Tab")
                if await visit.page.evaluate("document.activeElement.textContent") == "broken":
                    break
            await keys.press("Enter")
            await visit.page.wait_for_url("**/sets/default/broken")
            await visit.page.locator("[id='c/0/1']").wait_for()
            for _ in range(20):
                await keys.press("Tab")
                if await visit.focused() == "c/0/0":
                    break
            await keys.press("ArrowRight")
            assert await visit.focused() == "c/0/1"
            await visit.house.crash("broken-0-1")
            await visit.page.locator("[id='c/0/1'].problem").wait_for()
            assert await visit.focused() == "c/0/1", "a change does not take the focus away"
            await keys.press("Home")
            await keys.press("Enter")
            await visit.page.locator("#pane h2").first.wait_for()
            await visit.page.wait_for_function("document.activeElement.id === 'pane'")
            assert "LWS-E071" in await visit.page.locator("#pane").inner_text()
            await keys.press("Escape")
            assert await visit.focused() == "c/0/0"
            await keys.press("?")
            assert await visit.page.locator("dialog[open] h2").inner_text() == "Keys"
            await keys.press("Escape")
            await keys.press("n")
            await visit.page.wait_for_url(visit.house.base)

    journey(scenario)


def test_ranks_have_roles_and_names_for_screen_readers(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting() as visit:
            await furnish(visit)
            await visit.go("sets/default/broken")
            reader = await visit.page.context.new_cdp_session(visit.page)
            tree = await reader.send("Accessibility.getFullAXTree")
            nodes = [(node.get("role", {}).get("value"), node.get("name", {}).get("value")) for node in tree["nodes"]]
            names = [name for role, name in nodes if role == "gridcell"]
            assert names[0].startswith("0/0 CrashLoopBackOff")
            assert names[1:2] == ["0/1 Pending"]
            assert ("rowheader", "group 0") in nodes

    journey(scenario)


def test_pages_do_not_scroll_horizontally_on_a_phone(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting(viewport={"width": 390, "height": 844}, actions=True) as visit:
            await furnish(visit)
            await visit.house.model.diagnose()
            await visit.house.put_whole("chat", {"prefill": 40, "decode": 4}, size=1)
            await visit.page.goto(visit.house.base)
            await visit.page.locator("[id='w/default/chat']").wait_for()
            for path in (
                *PAGES,
                "disaggregated/default/chat",
                "sets/default/none",
                "causes/LWS-E071",
                "sets/default/broken?rank=0/0",
            ):
                await visit.page.goto(visit.house.base + path)
                assert await visit.page.evaluate("document.documentElement.scrollWidth") <= 390, path
            visit.complaints.clear()  # the browser logs the 404 response

    journey(scenario)


def test_address_opens_the_selected_rank(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting() as visit:
            await furnish(visit)
            await visit.go("sets/default/broken?rank=0/0")
            await visit.page.locator("#pane h2:has-text('0/0')").wait_for()
            await visit.page.locator("[id='c/0/1']").click()
            await visit.page.wait_for_url("**/sets/default/broken?rank=0%2F1")
            await visit.page.locator("#pulse.live").wait_for()

    journey(scenario)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_pass_the_accessibility_rules(visiting: Visiting, scheme: str) -> None:
    source = (resources.files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")

    async def scenario() -> None:
        async with visiting(color_scheme=scheme, actions=True) as visit:
            await furnish(visit)
            await visit.house.model.diagnose()
            for path in PAGES:
                await visit.go(path)
                if path == "sets/default/broken":
                    await visit.page.locator("[id='c/0/0']").click()
                    await visit.page.locator("#pane h2").first.wait_for()
                await visit.page.evaluate(source)
                found: Any = await visit.page.evaluate("axe.run()")
                told = [(one["id"], [node["html"][:150] for node in one["nodes"]]) for one in found["violations"]]
                assert told == [], path

    journey(scenario)


def test_hostile_page_in_the_same_browser_reads_and_does_nothing(visiting: Visiting) -> None:
    """In the worst case, a page on another port of 127.0.0.1, which is the same site, knows all addresses."""
    attack = """async ([base, file]) => {
        const found = [];
        for (const [path, options] of [
            ['', {}], ['', {credentials: 'include'}], ['', {mode: 'no-cors', credentials: 'include'}],
            ['stream?key=1&of=sets/default/web', {credentials: 'include'}],
            ['act', {method: 'POST', credentials: 'include', mode: 'no-cors', body: '{"verb": "restart"}'}],
        ]) {
            try { found.push((await (await fetch(base + path, options)).text()).slice(0, 80)); } catch { found.push(''); }
        }
        const frame = document.createElement('iframe');
        frame.src = base;
        const loaded = new Promise((done) => { frame.onload = done; setTimeout(done, 2000); });
        document.body.append(frame);
        await loaded;
        try { found.push(frame.contentDocument.body.textContent); } catch { found.push(''); }
        const script = document.createElement('script');
        const ran = new Promise((done) => { script.onload = () => done('ran'); script.onerror = () => done(''); });
        script.src = base + file;
        document.body.append(script);
        found.push(await ran);
        return found;
    }"""

    async def hostile(_: web.Request) -> web.Response:
        return web.Response(text="<!doctype html><title>x</title><body>", content_type="text/html")

    async def scenario() -> None:
        application = web.Application()
        application.add_routes([web.get("/", hostile)])
        async with visiting(actions=True) as visit, Listener(application, Address("127.0.0.1", 0)) as other:
            await furnish(visit)
            page = await visit.context.new_page()
            await page.goto(f"http://127.0.0.1:{other.port}/")
            assert [
                text for text in await page.evaluate(attack, [visit.house.base, f"{directory()}/main.js"]) if text
            ] == []
            assert visit.house.runner is not None
            assert visit.house.runner.calls == []

    journey(scenario)


def test_action_shows_its_command_and_dry_run_first(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting(actions=True) as visit:
            await furnish(visit)
            await visit.go("sets/default/web")
            await visit.page.locator("#pulse.live").wait_for()
            assert await visit.page.input_value("#scale-groups") == "3", "the current number"
            await visit.page.fill("#scale-groups", "5")
            await visit.page.click("button[data-verb=scale]")
            await visit.page.locator("dialog[open] pre:has-text('dry run')").wait_for()
            assert await visit.page.locator("dialog[open] h2").inner_text() == "lws -n default scale web --replicas 5"
            assert visit.house.runner is not None
            assert [words[-1] for words in visit.house.runner.calls] == ["--dry-run"]
            await visit.page.click("text=Run this command")
            await visit.page.locator("dialog[open] pre:has-text('done')").wait_for()
            assert visit.house.runner.calls[1:] == [["-n", "default", "scale", "web", "--replicas", "5"]]

    journey(scenario)


def test_five_hundred_groups_are_shown_and_follow_changes(visiting: Visiting) -> None:
    async def scenario() -> None:
        async with visiting(seconds=300) as visit:
            await visit.house.put_set("large", replicas=500, size=8)
            await visit.house.shows(large_499_7="Running")
            await visit.go("sets/default/large")
            cells = visit.page.locator("#grid td[id]")
            await cells.nth(3999).wait_for(state="attached")
            for group in range(100):
                await visit.house.crash(f"large-{group}-3")
            await visit.page.locator("[id='c/99/3'].problem").wait_for()
            assert await visit.page.locator("#grid .problem").count() == 100
            await visit.house.client.delete(LEADERWORKERSETS, ObjectKey(NAMESPACE, "large"))
            await visit.page.locator("h1:has-text('does not exist in namespace')").wait_for()

    journey(scenario)
