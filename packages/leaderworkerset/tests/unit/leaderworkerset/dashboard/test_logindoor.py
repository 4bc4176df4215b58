"""A shared dashboard: a visitor without a login sees the login page, and each user acts with their own token."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import count

import aiohttp
import pytest
from testkit.setclock import SetClock
from tests.dashboardhouse import House, Tokens, open_house

from leaderworkerset.dashboard.gatekeeper import ACTION_HEADER, HEADERS
from leaderworkerset.dashboard.visitors import LONGEST_VISIT, MOST_VISITORS, RECHECK, NotAdmittedError, Visitors

pytestmark = pytest.mark.slow


@asynccontextmanager
async def browser(house: House, token: str = "") -> AsyncIterator[aiohttp.ClientSession]:
    """Yield the session of a browser, logged in if there is a token."""
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(cookie_jar=jar) as session:
        if token:
            async with session.post(house.base + "login", data={"token": token}, headers=own(house)) as response:
                assert response.status == 200, await response.text()
        yield session


def own(house: House, **more: str) -> Mapping[str, str]:
    return {"Origin": f"http://127.0.0.1:{house.dashboard.port}"} | more


def visitors_of(tokens: Tokens, clock: SetClock) -> Visitors:
    numbers = count()
    return Visitors(tokens, clock, lambda: f"secret-{next(numbers)}")


async def test_visitor_without_a_login_sees_the_login_page_only() -> None:
    async with open_house(tokens=Tokens()) as house, browser(house) as session:
        await house.put_set("findme", replicas=1, size=1)
        await house.shows(findme_0="Running")
        paths = (
            "",
            "sets/default/findme",
            "sets/default/findme?as=text",
            "?stream=",
            "search?q=findme",
            "static/main.js",
        )
        places = (
            "pane/default/findme/0/0",
            "logs/default/findme",
            "first-error/default/findme",
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
        assert await house.text(session, "static/style.css")
        async with session.post(house.base + "act", json={"verb": "restart"}, headers=own(house)) as response:
            assert response.status == 401


async def test_token_opens_the_pages_and_names_its_user() -> None:
    async with open_house(tokens=Tokens()) as house:
        await house.put_set("web", replicas=1, size=1)
        await house.shows(web_0="Running")
        async with browser(house, "token-of-ann") as session:
            page = await house.text(session)
            assert "s/default/web" in page
            assert "<dt>user</dt><dd>ann (may act)</dd>" in page
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
    clock, tokens = SetClock(), Tokens()
    visitors = visitors_of(tokens, clock)
    session = await visitors.enter("token-of-ann")
    cookie = [f"lws-dashboard={session}"]
    assert (await visitors.find(cookie) or visitors) is not visitors
    del tokens.users["token-of-ann"]
    assert await visitors.find(cookie) is not None, "checked a moment ago"
    clock.time += timedelta(seconds=RECHECK)
    assert await visitors.find(cookie) is None
    assert await visitors.find([*cookie, *cookie]) is None


async def test_session_ends_after_eight_hours() -> None:
    clock = SetClock()
    visitors = visitors_of(Tokens(), clock)
    cookie = [f"lws-dashboard={await visitors.enter('token-of-ann')}"]
    clock.time += timedelta(seconds=LONGEST_VISIT - 1)
    assert "token" not in repr(await visitors.find(cookie))
    clock.time += timedelta(seconds=1)
    assert await visitors.find(cookie) is None


async def test_number_of_visitors_is_limited() -> None:
    visitors = visitors_of(Tokens(), SetClock())
    for _ in range(MOST_VISITORS):
        await visitors.enter("token-of-ann")
    with pytest.raises(NotAdmittedError, match="users are logged in"):
        await visitors.enter("token-of-bob")
