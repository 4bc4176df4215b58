"""Tests that only the dashboard's browser can read data or trigger an action."""

import asyncio
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict
from tests.dashboardhouse import ServedDashboard, open_house, until
from tests.fuzz.seeds import first_tier, seeds

from lwsctl.dashboard.requestchecks import ACTION_HEADER, COOKIE
from lwsctl.dashboard.staticfiles import directory

MARK = "findme"
"""The name of the LeaderWorkerSet that only the browser may read."""

REQUESTS = 1000
"""The number of requests that are generated from one seed."""

HOSTS = (
    "evil.example",
    "127.0.0.1",
    "127.0.0.1:1",
    "localhost.evil.example:{port}",
    "[::1]:{port}",
    "",
    "127.0.0.1:{port}x",
)
SITES = ("cross-site", "same-site", "x", "")
ORIGINS = ("http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1", "")
PATHS = (
    "",
    "open",
    f"sets/default/{MARK}",
    f"sets/default/{MARK}?as=text",
    f"stream?key=1&of=sets/default/{MARK}",
    f"sets/default/{MARK}/logs",
    f"pane/default/{MARK}/0/0",
    f"stream?key=1&of=logs/sets/default/{MARK}?rank=0/0",
    "act",
    f"{directory()}/main.js",
    "%2e%2e/",
    "x" * 5000,
    "\udcff",
)
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "X")


def strange(random: Random, house: ServedDashboard) -> tuple[str, str, CIMultiDict[str]]:
    """Return a request with at least one invalid part. The other parts are random, and may be valid."""
    secrets, port = house.dashboard.secrets, house.dashboard.port
    fault = random.choice(["host", "cookie", "origin", "site"])

    def chosen(name: str, right: str, wrong: tuple[str, ...]) -> str:
        is_wrong = fault == name or random.random() < 0.1
        return (random.choice(wrong) if is_wrong else right).format(port=port)

    headers = CIMultiDict({"Host": chosen("host", "127.0.0.1:{port}", HOSTS)})
    cookies = (
        "",
        "x",
        secrets.session_token[:-1],
        secrets.session_token + "x",
        secrets.link_token,
        secrets.action_token,
    )
    headers["Cookie"] = f"{COOKIE}={chosen('cookie', secrets.session_token, cookies)}"
    if fault == "origin" or random.random() < 0.5:
        headers["Origin"] = chosen("origin", "http://127.0.0.1:{port}", ORIGINS)
    headers["Sec-Fetch-Site"] = chosen("site", "same-origin", SITES)
    if random.random() < 0.5:
        headers[ACTION_HEADER] = random.choice([secrets.action_token, "", "x"])
    place = random.choice(
        [house.dashboard.request_checks.base, "/", f"/{secrets.path_prefix}", "//", f"/{secrets.path_prefix[:-1]}/"]
    )
    path = place + random.choice(PATHS)
    if path.endswith("/open"):
        path += f"?token={random.choice(['', 'x', secrets.link_token[:-1], secrets.session_token])}"
    return random.choice(METHODS), path, headers


async def ask(application: Any, method: str, path: str, headers: Mapping[str, str]) -> tuple[int, str]:
    """Return the status and the body of a response, without using a network."""
    request = make_mocked_request(method, path.encode(errors="replace").decode(), headers=headers, app=application)
    response = await application._handle(request)
    return response.status, getattr(response, "text", "") or ""


@pytest.mark.slow
@pytest.mark.parametrize("seed", first_tier(seeds(10), 3))
def test_malformed_requests_get_no_data_and_change_nothing(seed: int) -> None:
    async def scenario() -> None:
        random = Random(seed)
        async with open_house(actions=True) as house:
            await house.put_set(MARK, replicas=1, size=1)
            await until(lambda: house.model.snapshot.views, "the set")
            application = house.dashboard.application()
            application.freeze()
            for _ in range(REQUESTS):
                method, path, headers = strange(random, house)
                status, text = await ask(application, method, path, headers)
                assert status >= 400, (method, path, headers)
                assert MARK not in text, (method, path, headers)
            assert house.runner is not None
            assert house.runner.calls == []
            assert not house.dashboard.secrets.is_used

    asyncio.run(scenario())


@pytest.mark.slow
def test_well_formed_requests_get_an_answer() -> None:
    """Correct requests of the same form are accepted, so invalid requests are rejected for their content."""

    async def scenario() -> None:
        async with open_house(actions=True) as house:
            await house.put_set(MARK, replicas=1, size=1)
            await until(lambda: house.model.snapshot.views, "the set")
            application = house.dashboard.application()
            application.freeze()
            secrets = house.dashboard.secrets
            right = {
                "Host": f"127.0.0.1:{house.dashboard.port}",
                "Cookie": f"{COOKIE}={secrets.session_token}",
                "Sec-Fetch-Site": "same-origin",
            }
            for path in (f"sets/default/{MARK}", f"sets/default/{MARK}?as=text", f"pane/default/{MARK}/0/0"):
                status, text = await ask(application, "GET", house.dashboard.request_checks.base + path, right)
                assert status == 200, path
                assert MARK in text

    asyncio.run(scenario())
