"""Tests a shared dashboard. Visitors see the login page, and each user acts with a personal token."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from itertools import count

import aiohttp
import pytest
from testkit.fakeclock import FakeClock
from tests.dashboardhouse import ServedDashboard, Tokens, open_house

from lwsctl.dashboard.browserstreams import MOST_OF_USER as MOST_STREAMS_OF_USER
from lwsctl.dashboard.loginsessions import LONGEST_SESSION, MOST_OF_USER, MOST_SESSIONS, RECHECK, LoginSessions
from lwsctl.dashboard.requestchecks import ACTION_HEADER, HEADERS
from lwsctl.dashboard.staticfiles import directory

pytestmark = pytest.mark.slow


@asynccontextmanager
async def browser(house: ServedDashboard, token: str = "") -> AsyncIterator[aiohttp.ClientSession]:
    """Yield a browser session, which is logged in if there is a token."""
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(cookie_jar=jar) as session:
        if token:
            async with session.post(house.base + "login", data={"token": token}, headers=own(house)) as response:
                assert response.status == 200, await response.text()
        yield session


def own(house: ServedDashboard, **more: str) -> Mapping[str, str]:
    return {"Origin": f"http://127.0.0.1:{house.dashboard.port}"} | more


def visitors_of(tokens: Tokens, clock: FakeClock) -> LoginSessions:
    numbers = count()
    return LoginSessions(tokens, clock, lambda: f"secret-{next(numbers)}")


async def test_visitor_without_a_login_sees_the_login_page_only() -> None:
    async with open_house(tokens=Tokens()) as house, browser(house) as session:
        await house.put_set("findme", replicas=1, size=1)
        await house.shows(findme_0="Running")
        paths = (
            "",
            "sets/default/findme",
            "sets/default/findme?as=text",
            "stream",
            "stream?key=1&of=",
            "search?q=findme",
            f"{directory()}/main.js",
        )
        places = (
            "pane/default/findme/0/0",
            "stream?key=1&of=logs/sets/default/findme",
            "first-error/sets/default/findme",
            "open?token=",
            "topology",
        )
        for path in (*paths, *places):
            async with session.get(house.base + path) as response:
                text = await response.text()
                assert (response.status, "findme" in text) == (401, False), path
                assert "Log in" in text
                assert "form-action 'self'" in response.headers["Content-Security-Policy"]
                assert response.headers.keys() >= HEADERS.keys()
        assert await house.text(session, "healthz") == "ok\n"
        assert await house.text(session, f"{directory()}/style.css")
        async with session.post(house.base + "act", json={"verb": "restart"}, headers=own(house)) as response:
            assert response.status == 401


async def test_token_opens_the_pages_and_names_its_user() -> None:
    async with open_house(tokens=Tokens()) as house:
        await house.put_set("web", replicas=1, size=1)
        await house.shows(web_0="Running")
        async with browser(house, "token-of-ann") as session:
            page = await house.text(session)
            assert "s/default/web" in page
            assert ">ann (actions allowed)</a></dd>" in page
            assert "token-of-ann" not in page
            (cookie,) = session.cookie_jar
            assert (cookie["httponly"], cookie["samesite"], cookie["secure"]) == (True, "Strict", "")
            async with session.get(house.base, headers={"Sec-Fetch-Site": "cross-site"}) as response:
                assert response.status == 401


@pytest.mark.parametrize(
    ("token", "origin", "status"),
    [
        ("wrong", "http://127.0.0.1:{port}", 403),
        ("", "http://127.0.0.1:{port}", 403),
        ("x" * 5000, "http://127.0.0.1:{port}", 403),
        ("token-of-ann", "http://evil.example", 403),
        ("token-of-ann", "null", 403),
        ("token-of-ann", "", 403),
    ],
)
async def test_invalid_login_is_rejected(token: str, origin: str, status: int) -> None:
    async with open_house(tokens=Tokens()) as house, browser(house) as session:
        headers = {"Origin": origin.format(port=house.dashboard.port)} if origin else {}
        async with session.post(house.base + "login", data={"token": token}, headers=headers) as response:
            assert response.status == status
        assert not list(session.cookie_jar)


async def test_actions_run_as_their_own_user() -> None:
    tokens = Tokens()
    async with open_house(tokens=tokens) as house:
        await house.put_set("web", replicas=1, size=1)
        await house.shows(web_0="Running")
        secrets = {}
        asked = {"verb": "restart", "namespace": "default", "name": "web", "confirmed": True}
        async with browser(house, "token-of-ann") as ann, browser(house, "token-of-bob") as bob:
            for name, session in (("ann", ann), ("bob", bob)):
                page = await house.text(session, "sets/default/web")
                secrets[name] = page.partition('data-action="')[2].partition('"')[0]
            for given, status in ((secrets["ann"], 403), ("", 403), (secrets["bob"], 200)):
                headers = own(house, **{ACTION_HEADER: given})
                async with bob.post(house.base + "act", json=asked, headers=headers) as response:
                    assert response.status == status
            async with bob.post(house.base + "act", json=asked, headers={ACTION_HEADER: secrets["bob"]}) as response:
                assert response.status == 403, "without an origin"
        assert tokens.runners["bob"].calls == [["-n", "default", "restart", "web"]]
        assert "ann" not in tokens.runners or tokens.runners["ann"].calls == []


async def test_user_without_permissions_is_logged_out() -> None:
    clock, tokens = FakeClock(), Tokens()
    visitors = visitors_of(tokens, clock)
    session = await visitors.open("token-of-ann")
    cookie = [f"lws-dashboard={session}"]
    assert (await visitors.find(cookie) or visitors) is not visitors
    del tokens.users["token-of-ann"]
    assert await visitors.find(cookie) is not None, "checked a moment ago"
    clock.time += timedelta(seconds=RECHECK)
    assert await visitors.find(cookie) is None
    assert await visitors.find([*cookie, *cookie]) is None


async def test_session_expires_after_eight_hours() -> None:
    clock = FakeClock()
    visitors = visitors_of(Tokens(), clock)
    cookie = [f"lws-dashboard={await visitors.open('token-of-ann')}"]
    clock.time += timedelta(seconds=LONGEST_SESSION - 1)
    assert "token" not in repr(await visitors.find(cookie))
    clock.time += timedelta(seconds=1)
    assert await visitors.find(cookie) is None


async def test_many_logins_of_one_user_lock_nobody_out() -> None:
    visitors = visitors_of(Tokens(), FakeClock())
    first = await visitors.open("token-of-bob")
    sessions = [await visitors.open("token-of-ann") for _ in range(MOST_SESSIONS + 1)]
    living = [await visitors.find([f"lws-dashboard={session}"]) is not None for session in sessions]
    assert living == [False] * (len(sessions) - MOST_OF_USER) + [True] * MOST_OF_USER
    assert await visitors.find([f"lws-dashboard={first}"]) is not None


async def test_session_limit_closes_the_oldest_of_the_busiest_user() -> None:
    tokens = Tokens()
    tokens.users |= {f"token-{number}": f"user-{number}" for number in range(MOST_SESSIONS)}
    visitors = visitors_of(tokens, FakeClock())
    oldest, second = [await visitors.open("token-of-ann") for _ in range(2)]
    for number in range(MOST_SESSIONS - 2 + 1):
        await visitors.open(f"token-{number}")
    assert await visitors.find([f"lws-dashboard={oldest}"]) is None
    assert await visitors.find([f"lws-dashboard={second}"]) is not None


async def test_logout_closes_the_session() -> None:
    async with open_house(tokens=Tokens()) as house, browser(house, "token-of-ann") as session:
        assert 'href="/login"' in await house.text(session)
        assert 'action="/logout"' in await house.text(session, "login")
        (cookie,) = [f"lws-dashboard={one.value}" for one in session.cookie_jar]
        async with session.post(house.base + "logout", headers=own(house)) as response:
            assert (response.status, "You are logged out." in await response.text()) == (200, True)
        assert not list(session.cookie_jar)
        async with session.get(house.base, headers={"Cookie": cookie}) as response:
            assert response.status == 401


async def test_one_user_leaves_streams_to_others() -> None:
    async with open_house(tokens=Tokens()) as house, AsyncExitStack() as stack:
        ann, bob = [await stack.enter_async_context(browser(house, f"token-of-{name}")) for name in ("ann", "bob")]
        attempts = range(MOST_STREAMS_OF_USER + 1)
        opened = [await stack.enter_async_context(ann.get(house.base + "stream")) for _ in attempts]
        assert [stream.status for stream in opened] == [200] * MOST_STREAMS_OF_USER + [503]
        stream = await stack.enter_async_context(bob.get(house.base + "stream"))
        assert stream.status == 200
        ident = (await opened[0].content.readuntil(b"\n\n")).decode().split("data: ")[1].strip()
        for session, status in ((bob, 410), (ann, 204)):
            async with session.get(f"{house.base}stream/{ident}/1", params={"of": "topology"}) as answer:
                assert answer.status == status, "only its user changes a stream"


async def test_log_stream_ends_after_the_logout() -> None:
    async with open_house(tokens=Tokens()) as house, browser(house, "token-of-ann") as session:
        await house.put_set("web", replicas=1, size=1)
        await house.shows(web_0="Running")
        async with session.get(house.base + "stream?key=1&of=logs/sets/default/web") as stream:
            assert stream.status == 200
            async with session.post(house.base + "logout", headers=own(house)) as response:
                assert response.status == 200
            with suppress(aiohttp.ClientError):  # the response is incomplete
                while await stream.content.readany():
                    pass


async def test_an_action_prints_commands_for_its_user() -> None:
    tokens = Tokens()
    async with open_house(tokens=tokens) as house, browser(house, "token-of-ann") as session:
        await house.put_set("web", replicas=1, size=1)
        await house.shows(web_0="Running")
        secret = (await house.text(session, "sets/default/web")).partition('data-action="')[2].partition('"')[0]
        request = {"verb": "restart", "namespace": "default", "name": "web"}
        headers = own(house, **{ACTION_HEADER: secret})
        async with session.post(house.base + "act", json=request, headers=headers) as response:
            assert (await response.json())["command"] == "lws -n default restart web"
