"""Tests the HTTPS server with a real client."""

import asyncio
import gzip
import io
import json
import resource
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, contextmanager
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from typing import Any

import aiohttp
import pytest
from testkit.stoppedclock import StoppedLoop, UnfinishedRequest, tasks_end

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.serving.bindaddresses import Address
from kuberuntime.serving.limitlistener import LINGER_SECONDS
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.webhooks import certificates
from leaderworkerset.webhooks.certificates import Certificate
from leaderworkerset.webhooks.handlers import MUTATE_POD, VALIDATE_LEADERWORKERSET, VALIDATE_POD
from leaderworkerset.webhooks.review import Review
from leaderworkerset.webhooks.server import LARGE, LARGE_AT_ONCE, LARGEST_BODY, SECONDS, WebhookOptions, WebhookServer

DESCRIPTORS = 200

LIMIT = 20.0
"""The timeout for all conditions in seconds."""

AUTHORITY = certificates.create_authority(datetime.now(UTC))
SERVING = certificates.issue(AUTHORITY, ["127.0.0.1"], datetime.now(UTC))


@cache  # the context is created once, because hundreds of connections share it
def trust(authority: Certificate = AUTHORITY) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=authority.certificate.decode())


def review(**parts: Any) -> dict[str, Any]:
    request = {"uid": "u", "operation": "CREATE", "object": {"metadata": {"name": "p"}, "spec": {}}} | parts
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def server(*, body_seconds: float = SECONDS) -> WebhookServer:
    return WebhookServer(
        Address("127.0.0.1", 0), SERVING.chain, MANAGED.decisions, WebhookOptions(body_seconds=body_seconds)
    )


async def test_review_is_answered_over_https() -> None:
    """The server is ready when it responds over HTTP/1.1 (R-OP-50, R-MGR-5)."""
    async with server() as running, aiohttp.ClientSession() as client:
        assert running.is_ready
        async with client.post(running.url + MUTATE_POD, json=review(), ssl=trust()) as answer:
            assert answer.version == aiohttp.HttpVersion11
            assert (await answer.json())["response"] == {"uid": "u", "allowed": True}


async def test_server_answers_while_the_controller_loop_is_busy() -> None:
    """The event loop that started the server is blocked until the response arrives."""

    async def ask(url: str) -> int:
        async with aiohttp.ClientSession() as client, client.post(url, json=review(), ssl=trust()) as answer:
            return answer.status

    async with server() as running:
        with ThreadPoolExecutor(1) as threads:
            asked = threads.submit(lambda: asyncio.run(ask(running.url + VALIDATE_POD)))
            assert asked.result(timeout=10) == 200


def test_large_review_does_not_block_small_ones() -> None:
    """The response to the large review is sent after the response to the small review."""
    answered = threading.Event()

    def decide(asked: Review) -> JSONObject:
        if "large" in meta.annotations(asked.object):
            assert answered.wait(LIMIT)
        return asked.object

    async def ask(client: aiohttp.ClientSession, url: str, **annotations: str) -> bool:
        asked = review(object={"metadata": {"name": "p", "annotations": annotations}})
        async with client.post(url, json=asked, ssl=trust()) as answer:
            allowed: bool = (await answer.json())["response"]["allowed"]
            return allowed

    async def scenario() -> None:
        running = WebhookServer(Address("127.0.0.1", 0), SERVING.chain, {"/decide": decide})
        async with running, aiohttp.ClientSession() as client, asyncio.TaskGroup() as group:
            large = [group.create_task(ask(client, f"{running.url}/decide", large="x" * LARGE)) for _ in range(2)]
            assert await ask(client, f"{running.url}/decide")
            answered.set()
            assert await asyncio.gather(*large) == [True, True]

    asyncio.run(asyncio.wait_for(scenario(), LIMIT))


@pytest.mark.parametrize(("method", "path", "status"), [("GET", MUTATE_POD, 405), ("POST", "/convert", 404)])
async def test_other_requests_are_not_served(method: str, path: str, status: int) -> None:
    """Other requests are rejected (R-WHC-2)."""
    async with (
        server() as running,
        aiohttp.ClientSession() as client,
        client.request(method, running.url + path, ssl=trust()) as answer,
    ):
        assert answer.status == status


async def test_oversized_body_is_rejected() -> None:
    body = io.BytesIO(b" " * (LARGEST_BODY + 1))
    async with (
        server() as running,
        aiohttp.ClientSession() as client,
        client.post(running.url + MUTATE_POD, data=body, ssl=trust()) as answer,
    ):
        assert answer.status == 413


@pytest.mark.parametrize(
    ("sent", "headers", "words"),
    [
        (b"[" * 5000, {}, "the body must be JSON"),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, {}, "exceeded max depth"),
        (b"not gzip", {"content-encoding": "gzip"}, "must not be compressed (content-encoding: gzip)"),
        (
            gzip.compress(b"{}", mtime=0),
            {"content-encoding": "gzip"},
            "must not be compressed (content-encoding: gzip)",
        ),
        (b"x" * (LARGE + 1), {"content-encoding": "deflate"}, "must not be compressed (content-encoding: deflate)"),
    ],
)
async def test_unreadable_body_is_answered_in_one_line(sent: bytes, headers: dict[str, str], words: str) -> None:
    async with (
        server() as running,
        aiohttp.ClientSession() as client,
        client.post(running.url + VALIDATE_LEADERWORKERSET, data=sent, headers=headers, ssl=trust()) as answer,
    ):
        assert answer.status == 400
        text = await answer.text()
        assert words in text
        assert "\n" not in text


async def test_large_reviews_beyond_two_are_answered_with_503() -> None:
    """Large reviews, which any client can send, do not block other reviews and use limited memory."""
    held = threading.Event()

    def decide(asked: Review) -> JSONObject:
        if meta.name(asked.object) == "large":
            assert held.wait(LIMIT)
        return asked.object

    async def ask(client: aiohttp.ClientSession, url: str, name: str, size: int) -> int:
        asked = review(object={"metadata": {"name": name, "annotations": {"a": "x" * size}}})
        async with client.post(url, data=io.BytesIO(json.dumps(asked).encode()), ssl=trust()) as answer:
            return answer.status

    running = WebhookServer(Address("127.0.0.1", 0), SERVING.chain, {"/decide": decide})
    async with asyncio.timeout(LIMIT), running, aiohttp.ClientSession() as client, asyncio.TaskGroup() as group:
        url, largest = f"{running.url}/decide", LARGEST_BODY - 1024
        large = [group.create_task(ask(client, url, "large", largest)) for _ in range(8)]
        refused = [await one for one in islice(asyncio.as_completed(large), 6)]
        assert await ask(client, url, "usual", LARGE) == 200
        held.set()
        statuses = Counter([await one for one in large])
    assert refused == [503] * 6
    assert statuses == {200: 2, 503: 6}


async def test_internal_error_is_a_denial_with_its_text() -> None:
    """A request that panics upstream, with a null container that no API server sends (contract 10.2)."""
    prefix = "leaderworkerset.sigs.k8s.io/"
    metadata = {
        "name": "a-0",
        "labels": {prefix + "name": "a", prefix + "worker-index": "0"},
        "annotations": {prefix + "size": "1"},
    }
    pod = {"metadata": metadata, "spec": {"containers": [None]}}
    async with (
        server() as running,
        aiohttp.ClientSession() as client,
        client.post(running.url + MUTATE_POD, json=review(object=pod), ssl=trust()) as answer,
    ):
        found = (await answer.json())["response"]
        assert (found["uid"], found["allowed"], found["status"]["code"]) == ("u", False, 500)
        assert found["status"]["message"].startswith("internal error: AttributeError")


async def test_replaced_certificate_serves_new_connections() -> None:
    other = certificates.create_authority(datetime.now(UTC))
    replacement = certificates.issue(other, ["127.0.0.1"], datetime.now(UTC))
    async with server() as running:
        await running.replace_certificate(replacement.chain)
        async with aiohttp.ClientSession() as client:
            async with client.post(running.url + VALIDATE_POD, json=review(), ssl=trust(other)) as answer:
                assert answer.status == 200
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await client.post(running.url + VALIDATE_POD, json=review(), ssl=trust())


async def test_draining_server_answers_and_keeps_no_connection() -> None:
    async with server() as running, aiohttp.ClientSession() as client:
        async with client.post(running.url + VALIDATE_POD, json=review(), ssl=trust()) as answer:
            assert "Connection" not in answer.headers
        running.drain()
        async with client.post(running.url + VALIDATE_POD, json=review(), ssl=trust()) as answer:
            assert (answer.status, answer.headers["Connection"]) == (200, "close")


async def test_every_request_is_observed_with_its_code() -> None:
    seen: list[tuple[str, int]] = []

    observed = WebhookServer(
        Address("127.0.0.1", 0),
        SERVING.chain,
        MANAGED.decisions,
        WebhookOptions(observe=lambda path, code, _: seen.append((path, code))),
    )
    async with observed as running, aiohttp.ClientSession() as client:
        for method, path in (("POST", MUTATE_POD), ("GET", MUTATE_POD), ("POST", "/elsewhere")):
            async with client.request(method, running.url + path, json=review(), ssl=trust()):
                pass
    assert seen == [(MUTATE_POD, 200), (MUTATE_POD, 405)]


def test_failed_decision_is_observed_as_an_error() -> None:
    """The response has the status 200, so that users see its message. Error alerts would not detect it (R-OP-76)."""
    seen: list[int] = []

    def broken(_review: Review) -> JSONObject:
        raise RuntimeError("broken")

    async def scenario() -> int:
        options = WebhookOptions(observe=lambda _path, code, _: seen.append(code))
        observed = WebhookServer(Address("127.0.0.1", 0), SERVING.chain, {"/broken": broken}, options)
        async with (
            observed as running,
            aiohttp.ClientSession() as client,
            client.post(f"{running.url}/broken", json=review(), ssl=trust()) as answer,
        ):
            return answer.status

    assert asyncio.run(scenario()) == 200
    assert seen == [500]


async def test_stopped_server_does_not_listen() -> None:
    async with server() as running:
        url = running.url
    assert not running.is_ready
    port = int(url.rsplit(":", 1)[1])
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_port_in_use_is_an_error_at_the_start() -> None:
    async def scenario(port: int) -> None:
        with pytest.raises(OSError, match="address already in use"):
            async with WebhookServer(Address("127.0.0.1", port), SERVING.chain, MANAGED.decisions):
                pass

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        asyncio.run(scenario(taken.getsockname()[1]))


def test_ipv6_address_is_bracketed() -> None:
    assert WebhookServer(Address("::1", 9443), SERVING.chain, MANAGED.decisions).url == "https://[::1]:9443"


@pytest.mark.slow
async def test_half_open_connections_do_not_block_api_servers() -> None:
    """There are three hundred such connections, and API servers do not wait until they time out."""
    async with server() as running, aiohttp.ClientSession() as client:
        with ExitStack() as crowd:
            port = int(running.url.rsplit(":", 1)[1])
            crowded = [crowd.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(300)]
            async with client.post(running.url + VALIDATE_POD, json=review(), ssl=trust()) as answer:
                assert answer.status == 200
            crowded[0].settimeout(LIMIT)
            assert await asyncio.to_thread(crowded[0].recv, 1) == b""


async def test_missing_body_is_answered_with_408() -> None:
    async with asyncio.timeout(LIMIT), server(body_seconds=0.1) as running:
        port = int(running.url.rsplit(":", 1)[1])
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust())
        writer.write(f"POST {MUTATE_POD} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{{".encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 408 ")
        writer.transport.abort()


@pytest.mark.slow
async def test_missing_large_bodies_do_not_block_small_ones() -> None:
    head = f"POST {MUTATE_POD} HTTP/1.1\r\nHost: x\r\nContent-Length: {LARGEST_BODY}\r\n\r\n".encode()
    async with asyncio.timeout(LIMIT), server() as running, aiohttp.ClientSession() as client:
        port = int(running.url.rsplit(":", 1)[1])
        writers = []
        for _ in range(2 * LARGE_AT_ONCE):
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust())
            writer.write(head)
            writers.append(writer)
        async with client.post(running.url + VALIDATE_POD, json=review(), ssl=trust()) as answer:
            assert answer.status == 200
        for writer in writers:
            writer.transport.abort()


@contextmanager
def few_descriptors() -> Iterator[None]:
    """Limit the file descriptors of this process to `DESCRIPTORS`.

    More connections would only cause more TLS handshakes.
    """
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.slow
async def test_slow_bodies_do_not_block_api_servers() -> None:
    """There are too many connections. The headers of their requests were read, and almost a minute remains."""
    head = f"POST {MUTATE_POD} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{{".encode()
    async with AsyncExitStack() as stack:
        with few_descriptors():
            running = await stack.enter_async_context(server(body_seconds=60))
        client = await stack.enter_async_context(aiohttp.ClientSession())
        port = int(running.url.rsplit(":", 1)[1])
        streams = []
        for _ in range(DESCRIPTORS // 2 + 20):
            streams.append(await asyncio.open_connection("127.0.0.1", port, ssl=trust()))
            streams[-1][1].write(head)
        async with (
            asyncio.timeout(LIMIT),
            client.post(running.url + VALIDATE_POD, json=review(), ssl=trust()) as answer,
        ):
            assert answer.status == 200
        async with asyncio.timeout(LIMIT):
            assert await streams[0][0].read() == b""
        for _, writer in streams:
            writer.transport.abort()


async def test_rest_of_a_body_is_awaited_for_a_limited_time() -> None:
    """A waiting client's connection is closed. After a client disconnects, no data of the client remains."""
    async with server() as running:
        loop, port = running._loop, int(running.url.rsplit(":", 1)[1])
        at_rest = len(asyncio.all_tasks(loop))
        with StoppedLoop(loop) as time:
            staying, leaving = [
                await asyncio.to_thread(UnfinishedRequest, port, "POST /elsewhere HTTP/1.1", trust()) for _ in range(2)
            ]
            leaving.leave()
            assert (staying.status, leaving.status) == (404, 404)
            await time.move(LINGER_SECONDS)
            assert await asyncio.to_thread(staying.read_to_end)
            assert await tasks_end(loop, at_rest)
            staying.leave()
