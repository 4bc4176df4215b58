"""Tests the HTTP transport against real loopback servers, both aiohttp servers and misbehaving servers."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest
from aiohttp import web
from tests.unit.kuberuntime.client.httpserver import (
    GET,
    ask,
    hello,
    listening,
    serving,
    transport,
)

from kuberuntime.access.credentials import Credentials
from kuberuntime.client.http import CONNECTIONS
from kuberuntime.client.transport import Request
from kuberuntime.errors import ConnectionFailedError

POST = Request("POST", "/version", body=b"{}")


class Renewable:
    """Credentials that the server rejects at first."""

    def __init__(self, *tokens: str) -> None:
        self.tokens = list(tokens)

    async def get(self) -> Credentials:
        return Credentials(self.tokens[0])

    async def renew(self, refused: Credentials) -> bool:
        if len(self.tokens) > 1:
            self.tokens.pop(0)
        return Credentials(self.tokens[0]) != refused


async def test_request_and_answer_arrive_unchanged() -> None:
    seen: list[tuple[str, str, dict[str, str], bytes]] = []

    async def handler(request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        seen.append((request.method, request.raw_path, headers, await request.read()))
        return web.Response(status=201, body=b"made", headers={"Retry-After": "1"})

    async with serving(handler) as access:
        query = (("labelSelector", "a in (b,c),d!=e+f"), ("limit", "500"))
        answer = await ask(access, Request("POST", "/api/v1/pods", query, {"content-type": "x/y"}, b"{}"))
        assert (answer.status, answer.body, answer.headers["retry-after"]) == (201, b"made", "1")
    [(method, path, headers, body)] = seen
    assert (method, body) == ("POST", b"{}")
    assert path == "/api/v1/pods?labelSelector=a+in+(b,c),d!%3De%2Bf&limit=500"
    assert headers["authorization"] == "Bearer t"
    assert headers["user-agent"] == "lws/test"
    assert headers["content-type"] == "x/y"
    assert "accept-encoding" not in headers


async def test_repeated_response_headers_are_joined() -> None:
    """A real API server sends one header per warning."""

    async def handler(_: web.Request) -> web.Response:
        response = web.Response()
        for text in ("a", "b"):
            response.headers.add("Warning", f'299 - "{text}"')
        return response

    async with serving(handler) as access:
        answer = await ask(access, GET)
    assert answer.headers["warning"] == '299 - "a", 299 - "b"'


@pytest.mark.parametrize("size", [2**18 + 1, 3 * 2**20])
async def test_large_body_is_sent_again_with_renewed_credentials(size: int) -> None:
    body, received = bytes(range(256)) * (size // 256) + b"end", []

    async def handler(request: web.Request) -> web.Response:
        received.append((request.content_length, await request.content.read()))
        return web.Response(status=401 if len(received) == 1 else 200)

    async with serving(handler) as access:
        renewable = replace(access, credentials=Renewable("old", "new"))
        assert (await ask(renewable, Request("PUT", "/version", body=body))).status == 200
    assert received == [(len(body), body)] * 2


def test_server_may_be_below_a_path() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(text=request.path)

    async def scenario() -> bytes:
        async with serving(handler) as access:
            return (await ask(replace(access, server=f"{access.server}/k8s/clusters/c-1"))).body

    assert asyncio.run(scenario()) == b"/k8s/clusters/c-1/version"


async def test_connections_are_kept_and_shared() -> None:
    peers = set()

    async def handler(request: web.Request) -> web.Response:
        assert request.transport is not None
        peers.add(request.transport.get_extra_info("peername"))
        return web.Response()

    async with serving(handler) as access, transport(access) as made:
        for _ in range(10):
            await made.request(GET)
    assert len(peers) == 1


async def answer_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Respond to one request with keep-alive, and close the connection when the next request arrives."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
    await reader.read(1)


async def test_read_over_a_stale_connection_is_sent_again() -> None:
    async with listening(answer_once) as access, transport(access) as made:
        assert [(await made.request(GET)).status for _ in range(3)] == [200, 200, 200]


async def test_create_over_a_stale_connection_is_not_sent_again() -> None:
    async with listening(answer_once) as access, transport(access) as made:
        await made.request(GET)
        with pytest.raises(ConnectionFailedError, match="it closed the connection without a response"):
            await made.request(POST)


async def test_rejected_credentials_are_renewed_once() -> None:
    tried: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        tried.append(request.headers["authorization"])
        return web.Response(status=200 if tried[-1] == "Bearer new" else 401)

    async with serving(handler) as access:
        assert (await ask(replace(access, credentials=Renewable("old", "new")))).status == 200
        assert (await ask(replace(access, credentials=Renewable("old", "older", "new")))).status == 401
        assert (await ask(access)).status == 401
    assert tried == ["Bearer old", "Bearer new", "Bearer old", "Bearer older", "Bearer t"]


def test_redirect_is_not_followed() -> None:
    async def handler(_: web.Request) -> web.Response:
        raise web.HTTPFound("http://127.0.0.1:1/elsewhere")

    async def scenario() -> int:
        async with serving(handler) as access:
            return (await ask(access)).status

    assert asyncio.run(scenario()) == 302


async def test_unreachable_server_is_named() -> None:
    async with serving(hello) as access:
        pass
    with pytest.raises(ConnectionFailedError, match=f"cannot reach {access.server}: Connection refused"):
        await ask(access)


async def test_silent_server_times_out() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with listening(silent) as access:
        with pytest.raises(ConnectionFailedError, match="did not respond in time"):
            await ask(access, seconds=0.05)
        with pytest.raises(ConnectionFailedError, match="did not respond in time"):
            async with transport(access, 0.05) as made, made.stream(GET):
                pass


async def test_truncated_answer_is_a_connection_error() -> None:
    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{")

    async with listening(half) as access:
        with pytest.raises(ConnectionFailedError, match="cannot reach"):
            await ask(access)


async def test_answer_that_is_not_http_is_a_connection_error() -> None:
    async def noise(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"SSH-2.0-OpenSSH\r\n\r\n")

    async with listening(noise) as access:
        with pytest.raises(ConnectionFailedError, match="cannot reach"):
            await ask(access)


async def test_stream_yields_chunks_and_is_closed_when_left() -> None:
    left = asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"tick\n")
                await asyncio.sleep(0.001)
        finally:
            left.set()

    async with serving(handler) as access, transport(access) as made:
        async with made.stream(GET) as stream:
            assert stream.status == 200
            chunks = aiter(stream.chunks)
            assert (await anext(chunks)).startswith(b"tick\n")
        await asyncio.wait_for(left.wait(), 5)


async def test_broken_stream_is_a_connection_error() -> None:
    async def broken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ntick\n\r\n")

    async with listening(broken) as access, transport(access) as made, made.stream(GET) as stream:
        chunks = aiter(stream.chunks)
        assert await anext(chunks) == b"tick\n"
        with pytest.raises(ConnectionFailedError, match="cannot reach"):
            await anext(chunks)


async def test_open_streams_do_not_block_requests() -> None:
    done = asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        if request.path == "/stream":
            await done.wait()
        return response

    async with serving(handler) as access, transport(access) as made, AsyncExitStack() as streams:
        for _ in range(2 * CONNECTIONS):
            await streams.enter_async_context(made.stream(Request("GET", "/stream")))
        assert (await made.request(GET)).status == 200
        done.set()
