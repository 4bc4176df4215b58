"""Tests that the API server reviews access to metrics (R-MGR-6)."""

import asyncio
import sys

import msgspec
import pytest
from aiohttp import ClientSession, TCPConnector
from testkit.fakes import ScriptedTransport, failure, respond
from testkit.virtualtime import VirtualClock

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Response
from kuberuntime.errors import ConnectionFailedError
from kuberuntime.serving import delegatedauth
from kuberuntime.serving.bindaddresses import Address
from kuberuntime.serving.delegatedauth import (
    ALLOWED_SECONDS,
    DENIED_SECONDS,
    LIMIT,
    SUSPECT_SECONDS,
    UNKNOWN_BURST,
    UNKNOWN_RATE,
    Authorizer,
    UnknownTokenLimiter,
)
from kuberuntime.serving.serving import Listener

USER = {"username": "system:serviceaccount:monitoring:prometheus", "groups": ["g"], "extra": {"k": ["v"]}}
KNOWN = respond(201, {"status": {"authenticated": True, "user": USER}})
UNKNOWN = respond(201, {"status": {}})
ALLOWED = respond(201, {"status": {"allowed": True}})
DENIED = respond(201, {"status": {"allowed": False}})


@pytest.mark.parametrize(
    ("header", "script", "status"),
    [
        ("", [], 401),
        ("Basic abc", [], 401),
        ("Bearer ", [], 401),
        ("Bearer \udcff", [], 401),
        ("Bearer \u20ac", [], 401),
        ("Bearer t", [UNKNOWN], 401),
        ("Bearer t", [KNOWN, DENIED], 403),
        ("bearer t", [KNOWN, ALLOWED], 200),
    ],
)
@pytest.mark.virtual_time
async def test_reviews_of_the_api_server_decide(header: str, script: list[Response], status: int) -> None:
    transport = ScriptedTransport(*script)
    assert await Authorizer(Client(transport), VirtualClock()).status(header, "/metrics") == status
    assert len(transport.requests) == len(script)


@pytest.mark.virtual_time
async def test_review_contains_the_path_and_the_complete_user() -> None:
    transport = ScriptedTransport(KNOWN, ALLOWED)
    await Authorizer(Client(transport), VirtualClock()).status("Bearer t", "/metrics")
    first, second = (msgspec.json.decode(request.body)["spec"] for request in transport.requests)
    assert first == {"token": "t"}
    assert second == {
        "user": USER["username"],
        "uid": "",
        "groups": ["g"],
        "extra": {"k": ["v"]},
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
    }


@pytest.mark.virtual_time
async def test_reviews_are_cached_for_a_short_time() -> None:
    transport = ScriptedTransport(KNOWN, ALLOWED, KNOWN, DENIED, KNOWN, ALLOWED)
    authorizer = Authorizer(Client(transport), VirtualClock())
    for expected, wait in ((200, 0.0), (200, ALLOWED_SECONDS), (403, 0.0), (403, DENIED_SECONDS), (200, 0.0)):
        assert await authorizer.status("Bearer t", "/metrics") == expected
        await asyncio.sleep(wait)
    assert len(transport.requests) == 6


@pytest.mark.virtual_time
async def test_cache_of_denied_tokens_is_bounded() -> None:
    authorizer = Authorizer(Client(ScriptedTransport(*[UNKNOWN] * (LIMIT + 10))), VirtualClock())
    for number in range(LIMIT + 10):
        assert await authorizer.status(f"Bearer {number}", "/metrics") == 401
        await asyncio.sleep(1 / UNKNOWN_RATE)
    assert len(authorizer._denied) == LIMIT


@pytest.mark.virtual_time
async def test_invented_tokens_do_not_flood_the_api_server() -> None:
    transport = ScriptedTransport(*[UNKNOWN] * 1000)
    authorizer = Authorizer(Client(transport), VirtualClock())
    found = [await authorizer.status(f"Bearer {number}", "/metrics") for number in range(1000)]
    assert len(transport.requests) == 1 + UNKNOWN_BURST  # one request before the address becomes suspicious
    assert found[-1] == 429
    await asyncio.sleep(1 / UNKNOWN_RATE)
    assert await authorizer.status("Bearer late", "/metrics") == 401


@pytest.mark.virtual_time
async def test_scraper_is_answered_during_a_flood_of_invented_tokens() -> None:
    """Invalid tokens neither evict the scraper's cached review nor delay its next review."""
    flood = [UNKNOWN] * (1 + UNKNOWN_BURST)
    transport = ScriptedTransport(KNOWN, ALLOWED, *flood, KNOWN, ALLOWED)
    authorizer = Authorizer(Client(transport), VirtualClock())
    assert await authorizer.status("Bearer scraper", "/metrics") == 200
    await asyncio.sleep(ALLOWED_SECONDS)
    for number in range(2 * LIMIT):
        await authorizer.status(f"Bearer {number}", "/metrics")
    assert await authorizer.status("Bearer scraper", "/metrics") == 200
    assert len(transport.requests) == 2 + 1 + UNKNOWN_BURST + 2


@pytest.mark.virtual_time
async def test_scraper_with_a_new_token_is_answered_during_a_flood() -> None:
    """ServiceAccount tokens are replaced every hour, and the cache of a new leader is empty."""
    transport = ScriptedTransport(*[UNKNOWN] * (1 + UNKNOWN_BURST), KNOWN, ALLOWED)
    authorizer = Authorizer(Client(transport), VirtualClock())
    for number in range(2 * LIMIT):
        await authorizer.status(f"Bearer {number}", "/metrics", "10.0.0.1")
    assert await authorizer.status("Bearer new", "/metrics", "10.0.0.2") == 200


def test_unknown_tokens_of_one_address_leave_room_for_others() -> None:
    """The request from another address is answered before any review for the first address completes."""
    unknown = UnknownTokenLimiter()
    assert [unknown.try_take("10.0.0.1", 0.0) for _ in range(100)].count(True) == 1 + UNKNOWN_BURST
    assert [unknown.try_take(f"10.0.1.{number}", 0.0) for number in range(100)].count(True) == UNKNOWN_BURST - 1


@pytest.mark.parametrize("becomes_good", ["by time", "by a valid token"])
def test_address_is_not_suspected_forever(becomes_good: str) -> None:
    unknown, now = UnknownTokenLimiter(), 0.0
    while unknown.try_take("10.0.0.1", now):
        pass
    if becomes_good == "by time":
        now += SUSPECT_SECONDS
    else:
        unknown.clear("10.0.0.1")
    while unknown.try_take("10.0.0.2", now):  # exhausts the budget of suspicious addresses
        pass
    assert unknown.try_take("10.0.0.1", now)


@pytest.mark.virtual_time
async def test_valid_token_clears_its_address() -> None:
    transport = ScriptedTransport(KNOWN, DENIED, *[UNKNOWN] * (1 + UNKNOWN_BURST))
    authorizer = Authorizer(Client(transport), VirtualClock())
    assert await authorizer.status("Bearer t", "/metrics", "10.0.0.1") == 403
    found = [await authorizer.status(f"Bearer {number}", "/metrics", "10.0.0.1") for number in range(100)]
    assert found.count(401) == 1 + UNKNOWN_BURST


def test_memory_of_suspected_addresses_is_bounded() -> None:
    unknown = UnknownTokenLimiter()
    taken = [
        unknown.try_take(f"10.0.{number >> 8}.{number & 255}", number / UNKNOWN_RATE) for number in range(LIMIT + 10)
    ]
    assert all(taken)
    assert len(unknown._suspects) == LIMIT


@pytest.mark.parametrize(
    ("script", "status", "text"),
    [
        ([KNOWN, ALLOWED], 200, "numbers"),
        ([KNOWN, DENIED], 403, "does not have permission to get /metrics"),
        ([UNKNOWN], 401, "bearer token"),
        ([ConnectionFailedError("no answer")], 503, "no answer"),
        ([failure(403, "Forbidden", "no reviews for you")], 503, "no reviews for you"),
    ],
)
async def test_metrics_are_served_after_a_review(script: list[Response | Exception], status: int, text: str) -> None:
    authorizer = Authorizer(Client(ScriptedTransport(*script)), VirtualClock())
    served = delegatedauth.application("/metrics", lambda: b"numbers", "text/plain", authorizer)
    async with (
        Listener(served, Address("127.0.0.1", 0)) as listener,
        ClientSession() as client,
        client.get(f"http://127.0.0.1:{listener.port}/metrics", headers={"authorization": "Bearer t"}) as found,
    ):
        assert found.status == status
        assert text in await found.text()


@pytest.mark.skipif(sys.platform != "linux", reason="only there every 127.x.x.x is an address of the machine")
async def test_flood_is_limited_by_the_address_of_its_requests() -> None:
    """Many requests arrive from one loopback address, and a scraper uses a new token from another address."""
    transport = ScriptedTransport(*[UNKNOWN] * (1 + UNKNOWN_BURST), KNOWN, ALLOWED)
    authorizer = Authorizer(Client(transport), VirtualClock())
    served = delegatedauth.application("/metrics", lambda: b"numbers", "text/plain", authorizer)

    async def ask(address: str, token: str) -> int:
        connector = TCPConnector(local_addr=(address, 0))
        url, headers = f"http://127.0.0.1:{listener.port}/metrics", {"authorization": f"Bearer {token}"}
        async with ClientSession(connector=connector) as client, client.get(url, headers=headers) as found:
            return found.status

    async with Listener(served, Address("127.0.0.1", 0)) as listener:
        flood = [await ask("127.0.0.1", str(number)) for number in range(2 * UNKNOWN_BURST)]
        assert (flood.count(401), flood.count(429)) == (1 + UNKNOWN_BURST, UNKNOWN_BURST - 1)
        assert await ask("127.0.0.2", "new") == 200
