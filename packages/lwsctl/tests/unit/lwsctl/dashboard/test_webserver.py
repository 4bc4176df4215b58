"""Tests the running server: pages, streams, logs, panels and actions for its browser only."""

import asyncio
import json
import re
from collections import Counter
from contextlib import AsyncExitStack
from random import Random

import aiohttp
import pytest
from tests.attacker import Attacker
from tests.dashboardhouse import NODE, ServedDashboard, events, open_house, serving, topic, until
from tests.fuzz.seeds import seeds
from tests.integration.clusters import objects
from tests.unit.lwsctl.cli.views.test_episodetable import FULL

from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import CORE_EVENTS, NAMESPACES, NODES, PODS
from leaderworkerset.api.episode import Episode
from leaderworkerset.api.resources import LEADERWORKERSETS
from lwsctl.dashboard.address import Address, PageKind
from lwsctl.dashboard.browserstreams import MOST_STREAMS, MOST_TOPICS
from lwsctl.dashboard.pages.header import ClusterIdentity
from lwsctl.dashboard.pages.page import BETWEEN_READINGS
from lwsctl.dashboard.requestchecks import ACTION_HEADER, COOKIE, HEADERS
from lwsctl.dashboard.staticfiles import directory, files
from lwsctl.diagnosis.observed import Commands

pytestmark = pytest.mark.slow


async def first_events(
    house: ServedDashboard, session: aiohttp.ClientSession, path: str, ident: str, count: int
) -> list[tuple[str, str]]:
    """Read a stream until it contains this number of events."""
    chunks: list[bytes] = []
    async with session.get(house.base + "stream", params=topic(path, ident)) as response:
        assert response.headers["Content-Type"] == "text/event-stream"
        async for chunk in response.content.iter_any():
            chunks.append(chunk)
            if len(events(chunks)) >= count:
                return events(chunks)
    raise AssertionError(f"the stream ended: {chunks}")


async def seen_in(house: ServedDashboard, session: aiohttp.ClientSession, path: str, ident: str, words: str) -> str:
    """Read a stream until it contains the strings. Return the complete content."""
    chunks: list[bytes] = []
    async with session.get(house.base + "stream", params=topic(path, ident)) as response:
        async for chunk in response.content.iter_any():
            chunks.append(chunk)
            if words.encode() in b"".join(chunks):
                break
    return b"".join(chunks).decode()


def ident_of(page: str) -> str:
    """Return the state number of a page."""
    return page.partition('data-ident="')[2].partition('"')[0]


async def test_pages_show_sets_groups_and_the_cause() -> None:
    async with open_house() as house:
        await house.put_set("web", replicas=2, size=2)
        await house.put_set("broken", replicas=1, size=2, ready=0)
        await house.crash("broken-0")
        await house.shows(web_1_1="Running", broken_0="CrashLoopBackOff", broken_0_1="Pending")
        async with house.browser() as session:
            await house.model.diagnose()
            page = await house.text(session)
            assert page.index("broken") < page.index(">web<"), "problems come first"
            assert "LWS-E071" in page, house.model.snapshot.diagnoses
            assert "2 of 2 groups ready" in page
            grid = await house.text(session, "sets/default/broken")
            assert 'title="0/0 CrashLoopBackOff' in grid
            assert 'role="grid"' in grid
            table = await house.text(session, "sets/default/broken?as=table")
            assert table.count('<tr id="t/') == 2
            for way in ("node", "revision"):
                assert 'id="c/0/1"' in await house.text(session, f"sets/default/broken?by={way}")
            text = await house.text(session, "sets/default/broken?as=text")
            assert text.startswith("broken is crashing (LWS-E071): container main of pod broken-0 crashed")
            assert "broken group 0: 0 of 2 ranks ready" in text
            rollout = await house.text(session, "sets/default/web/rollout")
            assert "Limits: at most 1 group unavailable" in rollout
            saved = await house.text(session, "sets/default/broken?as=file")
            assert "<script" not in saved
            assert "href" not in saved
            assert "LWS-E071" in saved


async def test_missing_set_is_reported_and_appears_when_created() -> None:
    async with open_house() as house, house.browser() as session:
        page = await house.text(session, "sets/default/web", status=404)
        assert "LeaderWorkerSet web does not exist in namespace default" in page
        assert "DisaggregatedSet web does not exist" in await house.text(
            session, "disaggregated/default/web", status=404
        )
        reading = asyncio.create_task(first_events(house, session, "sets/default/web", ident_of(page), 1))
        await house.put_set("web", replicas=1, size=2)
        ((name, data), *_) = await reading
        assert name == "difference"
        assert any(key == "title" and "web" in html for _, key, html in json.loads(data)["put"])


async def test_change_is_a_difference_and_reconnection_resumes() -> None:
    async with open_house() as house:
        await house.put_set("web", replicas=3, size=2)
        await house.shows(web_2_1="Running")
        async with house.browser() as session:
            page = await house.text(session, "sets/default/web")
            assert "Events are being read" in page
            read = await first_events(house, session, "sets/default/web", ident_of(page), 1)
            assert [key for _, key, _ in json.loads(read[0][1])["put"]] == ["timeline-text"], "without a change"
            page = await house.text(session, "sets/default/web")
            await house.crash("web-1-1")
            found = await first_events(house, session, "sets/default/web", ident_of(page), 1)
            rows = [key for _, key, _ in json.loads(found[0][1])["put"] if key[:2] in ("g/", "c/")]
            assert rows == ["g/1"], "only the row of the group that changed"
            again = await first_events(house, session, "sets/default/web", ident_of(page), 1)
            assert again[0] == found[0]
            ((name, data), *_) = await first_events(house, session, "sets/default/web", "gone.7", 1)
            assert name == "whole"
            assert "CrashLoopBackOff" in json.loads(data)["regions"]["rows"]


async def test_restarted_server_sends_the_whole_page() -> None:
    async with open_house() as house:
        await house.put_set("web", replicas=1, size=1)
        async with serving(house.transport) as other, other.browser() as session:
            ident = ident_of(await other.text(session))
        async with serving(house.transport) as other, other.browser() as session:
            ((name, _), *_) = await first_events(other, session, "", ident, 1)
            assert name == "whole"


async def test_recorded_failures_are_read_for_their_page() -> None:
    async with open_house() as house, house.browser() as session:
        asked: list[ObjectKey] = []

        async def read(key: ObjectKey) -> list[Episode]:
            asked.append(key)
            return [FULL]

        async def fail(_: ObjectKey) -> list[Episode]:
            raise OSError("the disk is gone")

        house.model.read_episodes = read
        assert "app: exit code 3" in await house.text(session, "sets/prod/web/history")
        assert "failed first" in await house.text(session, "sets/prod/web/history/0/3")
        assert asked == [ObjectKey("prod", "web")] * 2
        house.model.read_episodes = fail
        assert "could not be read" in await house.text(session, "sets/prod/other/history")


async def test_ten_tabs_share_one_watch_and_one_rendering() -> None:
    async with open_house() as house:
        await house.put_set("web", replicas=1, size=1)
        await house.shows(web_0="Running")
        async with house.browser() as session:
            ident = ident_of(await house.text(session))
            tabs = [asyncio.create_task(first_events(house, session, "", ident, 1)) for _ in range(10)]
            await asyncio.sleep(0)
            await house.crash("web-0")
            assert len({str(found[0]) for found in await asyncio.gather(*tabs)}) == 1
            assert len(house.dashboard.subscriptions._opened) == 1


async def test_slow_reader_delays_no_other_and_loses_nothing() -> None:
    async with open_house() as house, house.browser() as session:
        await house.put_set("web", replicas=1, size=1)
        await house.shows(web_0="Running")
        slow = "sets/default/web?by=rack"
        racks, grid = [ident_of(await house.text(session, path)) for path in (slow, "sets/default/web")]
        async with session.get(house.base + "stream", params=topic(slow, racks)) as stream:
            house.transport.may_answer.clear()
            await asyncio.sleep(BETWEEN_READINGS)
            await house.crash("web-0", message="first")
            await house.shows(web_0="CrashLoopBackOff")
            await house.crash("web-0", message="second")
            assert "second" in await seen_in(house, session, "sets/default/web", grid, "second")
            house.transport.may_answer.set()
            chunks: list[bytes] = []
            async for chunk in stream.content.iter_any():
                chunks.append(chunk)
                if b"second" in b"".join(chunks):
                    return
    raise AssertionError("the stream ended")


async def test_unreadable_answer_is_not_a_server_problem() -> None:
    async with open_house() as house:
        await house.put_set("web", replicas=1, size=1)
        await house.crash("web-0")
        await house.shows(web_0="CrashLoopBackOff")
        house.transport.odd = CORE_EVENTS
        await house.model.diagnose()
        assert house.model.snapshot.connection_error == ""


@pytest.mark.parametrize(
    "path",
    [
        "sets/default/no",
        "sets/default/no/rollout",
        "sets/default/no/logs",
        "disaggregated/default/no",
        "causes/LWS-E999",
    ],
)
async def test_missing_objects_have_status_404(path: str) -> None:
    async with open_house() as house, house.browser() as session:
        assert "does not exist" in await house.text(session, path, status=404)


async def test_free_accelerators_are_shown_with_their_shares() -> None:
    async with open_house() as house, house.browser() as session:
        container = {"name": "main", "image": "a", "resources": {"limits": {"nvidia.com/gpu": 2}}}
        lws = objects.lws("gpus", replicas=3, size=2)
        lws["spec"]["leaderWorkerTemplate"]["workerTemplate"] = {"spec": {"containers": [container]}}
        lws["metadata"] |= {"name": "gpus", "namespace": "default"}
        await house.client.create(LEADERWORKERSETS, lws)
        await house.client.patch(
            NODES,
            ObjectKey("", NODE),
            {"status": {"allocatable": {"nvidia.com/gpu": "8"}}},
            kind="merge",
            subresource="status",
            manager="test",
        )
        await until(lambda: house.model.snapshot.views, "the set")
        assert '<dd id="totals/GPUs">0 / 12</dd>' in await house.text(session)
        await house.dashboard.subscriptions.facts(Address(kind=PageKind.NOW))
        assert '<dd id="totals/GPUs free">8</dd>' in await house.text(session)


async def test_all_commands_to_copy_address_the_same_cluster() -> None:
    """Commands without the option would use the current cluster of the user, which is a different cluster."""
    async with open_house() as house, house.browser() as session:
        house.model.commands = Commands(lws="lws --local=dev", kubectl="")
        house.model.refresh_snapshot()
        pages = [await house.text(session)]
        await house.put_set("broken", replicas=1, size=2, ready=0)
        await house.crash("broken-0", restarts=9)
        await house.shows(broken_0="CrashLoopBackOff", broken_0_1="Pending")
        paths = ["", "sets/default/broken", "sets/default/broken/rollout", "pane/default/broken/0/0"]
        pages += [await house.text(session, path) for path in paths]
        await house.model.diagnose()
        pages += [await house.text(session, path) for path in paths]
        gone = [
            "sets/default/none",
            "sets/default/none/rollout",
            "sets/default/none/logs",
            "disaggregated/default/none",
        ]
        pages += [await house.text(session, path, status=404) for path in gone]
        commands = [re.findall('data-copy="([^"]*)"', page) for page in pages]
        assert all(commands[number] for number in (0, 5, -1, -2, -3, -4)), (
            "of the first page, of a cause, of missing objects"
        )
        assert [command for own in commands for command in own if not command.startswith("lws --local=dev ")] == []


async def test_number_of_streams_is_limited() -> None:
    async with open_house() as house, house.browser() as session, AsyncExitStack() as streams:
        ident = ident_of(await house.text(session))
        for _ in range(MOST_STREAMS):
            stream = await streams.enter_async_context(session.get(house.base + "stream", params=topic("", ident)))
            assert stream.status == 200
        async with session.get(house.base + "stream") as refused:
            assert refused.status == 503


async def test_one_stream_follows_many_topics_and_is_limited() -> None:
    async with open_house() as house, house.browser() as session:
        await house.put_set("web", replicas=1, size=1)
        await house.crash("web-0")
        await house.shows(web_0="CrashLoopBackOff")
        house.transport.said = b"2026-01-01T00:00:05Z step 3\n"
        async with session.get(house.base + "stream") as stream:
            ident = (await stream.content.readuntil(b"\n\n")).decode().split("data: ")[1].strip()

            async def ask(key: str, status: int, **query: str) -> None:
                async with session.get(f"{house.base}stream/{ident}/{key}", params=query) as answer:
                    assert answer.status == status, (key, query)

            async def read(*words: bytes) -> bytes:
                found = b""
                while not all(word in found for word in words) and not stream.content.at_eof():
                    found += await stream.content.readany()
                return found

            await ask("1-1", 204, of="sets/default/web", **{"from": "old.7"})
            await ask("2-1", 204, of="logs/sets/default/web?rank=0/0")
            found = await read(b"event: whole", b"step 3", b"}\n\n")
            assert b"data: 1-1\nid: " in found
            assert b"event: lines\ndata: 2-1\n" in found or b"data: 2-1\nevent: lines\n" in found
            await ask("2-1", 204)
            await ask("1-1", 204)
            (open_stream,) = house.dashboard.streams._open.values()
            assert not open_stream.topics
            for path in ("nowhere", "logs/sets/default/web?rank=x", "logs/default", "causes"):
                await ask("3", 404, of=path)
            await ask("x", 404, of="topology")
            for number in range(MOST_TOPICS):
                await ask(str(number), 204, of="topology")
            await ask("99", 503, of="topology")
        async with session.get(f"{house.base}stream/{ident}x/1", params={"of": "topology"}) as gone:
            assert gone.status == 410


async def test_rank_pane_explains_it_and_escapes_events() -> None:
    async with open_house() as house:
        await house.put_set("web", replicas=1, size=2, ready=0)
        await house.crash("web-0-1", message="<script>alert(1)</script>")
        about = {"kind": "Pod", "namespace": "default", "name": "web-0-1"}
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "e", "namespace": "default"},
            "involvedObject": about,
            "type": "Warning",
            "reason": "BackOff",
            "message": "<img src=x>",
            "lastTimestamp": "2026-01-01T00:00:00Z",
        }
        await house.client.create(CORE_EVENTS, event)
        await house.shows(web_0="Pending", web_0_1="CrashLoopBackOff")
        async with house.browser() as session:
            pane = await house.text(session, "pane/default/web/0/1")
            assert "LWS-E071" in pane
            assert "&lt;img src=x&gt;" in pane
            assert "<script" not in pane
            house.transport.said = b"logged in with password=hunter2hunter2\nstep 3 <b>\n"
            pane = await house.text(session, "pane/default/web/0/1")
            assert "logged in with password=[masked]\nstep 3 &lt;b&gt;" in pane
            assert pane.index("Last lines") < pane.index("1 event"), "logs come first"
            assert "<dl" not in pane, "the cluster measures nothing"
            for path in ("pane/default/web/0/7", "pane/default/other/0/0", "pane/default/web/x/y"):
                async with session.get(house.base + path) as response:
                    assert response.status == 404


async def test_ids_are_unique_on_every_page_and_form() -> None:
    async with open_house(actions=True) as house, house.browser() as session:
        await house.put_set("web", replicas=2, size=2)
        await house.put_whole("chat", {"prefill": 2, "decode": 1}, size=1)
        await house.crash("web-1-1")
        await house.shows(web_1_1="CrashLoopBackOff")
        paths = ["", "topology", "causes/LWS-E071", "disaggregated/default/chat"]
        paths += [f"sets/default/web{part}" for part in ("", "/rollout", "/logs", "/history")]
        paths += [f"sets/default/web?by={way}" for way in ("node", "rack", "revision")]
        forms = [*paths, "?as=table", "sets/default/web?as=table"]
        forms += [f"{path}?as=file" for path in paths if "?" not in path and not path.endswith("logs")]
        for path in forms:
            ids = re.findall(r'\sid="([^"]*)"', await house.text(session, path))
            assert [name for name, count in Counter(ids).items() if count > 1] == [], path


def test_styles_select_classes_instead_of_ids() -> None:
    selectors = re.sub(r"\{[^{}]*\}", "{}", files()["style.css"])
    assert re.findall(r"(?<![\w&])#[\w-]+", selectors) == []


async def test_every_response_has_headers_and_files_are_served() -> None:
    async with open_house() as house, house.browser() as session:
        for path in (
            "",
            "nowhere",
            f"{directory()}/none.js",
            "static/no/main.js",
            "static/../webserver.py",
            *(f"{directory()}/{name}" for name in files()),
        ):
            async with session.get(house.base + path) as response:
                cached = {"Cache-Control": "private, max-age=31536000, immutable"}
                expected = {**HEADERS, **(cached if response.status == 200 and path else {})}
                assert {name: response.headers[name] for name in HEADERS} == expected, path
                assert (response.headers.get("Content-Encoding") is not None) is (response.status == 200), path
                assert response.status == (404 if "no" in path or ".." in path else 200), path


def test_dashboard_files_stay_within_sixty_kilobytes() -> None:
    assert sum(len(text.encode()) for text in files().values()) <= 60_000


async def test_address_without_a_page_links_to_the_others() -> None:
    async with open_house() as house, house.browser() as session:
        for path in ("nowhere", "sets/default", "causes/E1", "sets/default/web?by=x"):
            page = await house.text(session, path, status=404)
            for link in ("", "topology"):
                assert f'href="{house.dashboard.request_checks.base}{link}"' in page, path


async def test_page_with_a_secret_is_not_compressed() -> None:
    for actions in (False, True):
        async with (
            open_house(actions=actions) as house,
            house.browser() as session,
            session.get(house.base) as response,
        ):
            assert ("Content-Encoding" in response.headers) is not actions


async def test_header_names_the_cluster_and_the_user() -> None:
    async with open_house() as house, house.browser() as session:
        house.dashboard.about = ClusterIdentity(cluster="prod-<1>", context="ctx", user="ann", version="1.2")
        page = await house.text(session)
        for name, value in (("Cluster", "prod-&lt;1&gt;"), ("Context", "ctx"), ("User", "ann (read-only)")):
            assert f"<dt>{name}</dt><dd>{value}</dd>" in page


async def test_link_opens_one_browser_once() -> None:
    async with open_house() as house:
        await house.put_set("web")
        async with aiohttp.ClientSession() as stranger, stranger.get(house.base) as response:
            assert response.status == 403
            assert "web" not in (await response.text()).replace("browser", "")
        async with house.browser() as session:
            (cookie,) = session.cookie_jar
            assert (cookie.key, cookie["httponly"], cookie["samesite"]) == (COOKIE, True, "Strict")
            assert cookie["path"] == house.dashboard.request_checks.base
        async with aiohttp.ClientSession() as thief, thief.get(house.dashboard.link) as response:
            assert response.status == 403
            assert "was already used" in await response.text()
            assert not response.cookies


async def test_action_runs_after_its_dry_run_is_confirmed() -> None:
    async with open_house(actions=True) as house, house.browser() as session:
        page = await house.text(session, "sets/default/web", status=404)
        token = page.partition('data-action="')[2].partition('"')[0]
        assert token == house.dashboard.secrets.action_token
        own = {ACTION_HEADER: token, "Origin": f"http://127.0.0.1:{house.dashboard.port}"}
        asked = {"verb": "scale", "namespace": "default", "name": "web", "groups": "3"}
        assert house.runner is not None
        for confirmed, said in ((False, "dry run"), (True, "done"), ("true", "dry run")):
            async with session.post(
                house.base + "act", json={**asked, "confirmed": confirmed}, headers=own
            ) as response:
                answer = await response.json()
            assert answer["command"] == "lws -n default scale web --replicas 3"
            assert said in answer["text"]
        plain = ["-n", "default", "scale", "web", "--replicas", "3"]
        assert house.runner.calls == [[*plain, "--dry-run"], plain, [*plain, "--dry-run"]]
        for body, headers, status in (
            (b"{", own, 422),
            (b'{"verb": "delete"}', own, 422),
            (b"[]", own, 422),
            (b'{"verb":' + b"[" * 2000 + b"]" * 2000 + b"}", own, 422),
            (b"x" * 5000, own, 414),
            (json.dumps(asked).encode(), {"Origin": own["Origin"]}, 403),
            (json.dumps(asked).encode(), {ACTION_HEADER: token}, 403),
        ):
            async with session.post(house.base + "act", data=body, headers=headers) as response:
                assert response.status == status, body[:20]
        assert len(house.runner.calls) == 3


async def test_actions_are_not_offered_and_rejected_when_disabled() -> None:
    async with open_house() as house, house.browser() as session:
        assert "data-verb" not in await house.text(session, "sets/default/web", status=404)
        own = {
            "Origin": f"http://127.0.0.1:{house.dashboard.port}",
            ACTION_HEADER: house.dashboard.secrets.action_token,
        }
        async with session.post(house.base + "act", json={"verb": "restart"}, headers=own) as response:
            assert response.status == 403
            assert "read-only" in await response.text()


@pytest.mark.parametrize("seed", seeds(1))
async def test_hostile_objects_do_not_affect_sets_of_others(seed: int) -> None:
    async with open_house() as house, house.browser() as session:
        await house.put_set("web", replicas=1, size=2)
        await house.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tenant"}})
        tenant = Attacker(house.client, "tenant", Random(seed))
        await tenant.attack(200)
        assert tenant.stored.total() >= 200
        await house.crash("web-0-1", message=f"out of luck {seed}")
        await house.shows(web_0="Running", web_0_1="CrashLoopBackOff")
        await house.model.diagnose()
        assert house.model.snapshot.connection_error == ""
        for path in ("sets/default/web", "sets/default/web?as=text", "sets/default/web?as=table"):
            assert f"out of luck {seed}" in await house.text(session, path)
        now = await house.text(session)
        assert "out of luck" in now
        for view in house.model.snapshot.views:
            await house.text(session, f"sets/{view.namespace}/{view.name}")


async def test_deleted_set_disappears() -> None:
    async with open_house() as house, house.browser() as session:
        await house.put_set("web", replicas=1, size=1)
        await until(lambda: house.model.snapshot.views, "the set")
        assert "s/default/web" in await house.text(session)
        await house.client.delete(LEADERWORKERSETS, ObjectKey("default", "web"))
        await house.client.delete(PODS, ObjectKey("default", "web-0"))
        await until(lambda: not house.model.snapshot.views, "its end")
        assert "s/default/web" not in await house.text(session)
        assert (await house.client.list(NAMESPACES)).items
