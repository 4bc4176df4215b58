"""The HTTP transport against real servers on loopback: aiohttp ones, and raw ones that misbehave."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
import trustme
from aiohttp import WSMsgType, web

from kuberuntime.access.access import TLS, Access
from kuberuntime.access.credentials import Credentials, Material, StoredCredentials
from kuberuntime.client import channels
from kuberuntime.client.http import CONNECTIONS, HTTPTransport
from kuberuntime.client.transport import Request, Response
from kuberuntime.errors import ConfigError, ConnectionFailedError, NotFoundError

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Connection = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

NOTHING = Material("")
GET = Request("GET", "/version")
POST = Request("POST", "/version", body=b"{}")


def token(value: str) -> StoredCredentials:
    return StoredCredentials(token=Material("token", value.encode()), certificate=NOTHING, key=NOTHING)


class Renewable:
    """Credentials that are refused at first."""

    def __init__(self, *tokens: str) -> None:
        self.tokens = list(tokens)

    async def get(self) -> Credentials:
        return Credentials(self.tokens[0])

    async def renew(self, refused: Credentials) -> bool:
        if len(self.tokens) > 1:
            self.tokens.pop(0)
        return Credentials(self.tokens[0]) != refused


@asynccontextmanager
async def serving(handler: Handler, context: ssl.SSLContext | None = None) -> AsyncIterator[Access]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    scheme = "https" if context else "http"
    try:
        yield Access(f"{scheme}://127.0.0.1:{runner.addresses[0][1]}", token("t"))
    finally:
        await runner.cleanup()


@asynccontextmanager
async def listening(connection: Connection) -> AsyncIterator[Access]:
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await connection(reader, writer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(serve(reader, writer))
        tasks.add(task)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        yield Access(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", token("t"))
    await asyncio.gather(*tasks)


@asynccontextmanager
async def transport(access: Access, seconds: float = 5.0) -> AsyncIterator[HTTPTransport]:
    made = HTTPTransport(access, user_agent="lws/test", seconds=seconds)
    try:
        yield made
    finally:
        await made.close()


async def ask(access: Access, request: Request = GET, seconds: float = 5.0) -> Response:
    async with transport(access, seconds) as made:
        return await made.request(request)


async def hello(_: web.Request) -> web.Response:
    return web.json_response({"hello": "world"})


def test_a_request_arrives_as_it_is_and_so_does_its_answer() -> None:
    seen: list[tuple[str, str, dict[str, str], bytes]] = []

    async def handler(request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        seen.append((request.method, request.raw_path, headers, await request.read()))
        return web.Response(status=201, body=b"made", headers={"Retry-After": "1"})

    async def scenario() -> None:
        async with serving(handler) as access:
            query = (("labelSelector", "a in (b,c),d!=e+f"), ("limit", "500"))
            answer = await ask(access, Request("POST", "/api/v1/pods", query, {"content-type": "x/y"}, b"{}"))
            assert (answer.status, answer.body, answer.headers["retry-after"]) == (201, b"made", "1")

    asyncio.run(scenario())
    [(method, path, headers, body)] = seen
    assert (method, body) == ("POST", b"{}")
    assert path == "/api/v1/pods?labelSelector=a+in+(b,c),d!%3De%2Bf&limit=500"
    assert headers["authorization"] == "Bearer t"
    assert headers["user-agent"] == "lws/test"
    assert headers["content-type"] == "x/y"
    assert "accept-encoding" not in headers


@pytest.mark.parametrize("size", [2**18 + 1, 3 * 2**20])
def test_a_large_body_arrives_whole_and_once_more_after_its_credentials_were_refused(size: int) -> None:
    body, received = bytes(range(256)) * (size // 256) + b"end", []

    async def handler(request: web.Request) -> web.Response:
        received.append((request.content_length, await request.content.read()))
        return web.Response(status=401 if len(received) == 1 else 200)

    async def scenario() -> None:
        async with serving(handler) as access:
            renewable = replace(access, credentials=Renewable("old", "new"))
            assert (await ask(renewable, Request("PUT", "/version", body=body))).status == 200

    asyncio.run(scenario())
    assert received == [(len(body), body)] * 2


def test_a_server_may_live_below_a_path() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(text=request.path)

    async def scenario() -> bytes:
        async with serving(handler) as access:
            return (await ask(replace(access, server=f"{access.server}/k8s/clusters/c-1"))).body

    assert asyncio.run(scenario()) == b"/k8s/clusters/c-1/version"


def test_connections_are_kept_and_shared() -> None:
    peers = set()

    async def handler(request: web.Request) -> web.Response:
        assert request.transport is not None
        peers.add(request.transport.get_extra_info("peername"))
        return web.Response()

    async def scenario() -> None:
        async with serving(handler) as access, transport(access) as made:
            for _ in range(10):
                await made.request(GET)

    asyncio.run(scenario())
    assert len(peers) == 1


async def answer_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one request, promise to keep the connection, and close it when the next one comes."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
    await reader.read(1)


def test_a_read_over_a_connection_that_went_stale_is_sent_again() -> None:
    async def scenario() -> None:
        async with listening(answer_once) as access, transport(access) as made:
            assert [(await made.request(GET)).status for _ in range(3)] == [200, 200, 200]

    asyncio.run(scenario())


def test_a_create_over_a_connection_that_went_stale_is_not() -> None:
    async def scenario() -> None:
        async with listening(answer_once) as access, transport(access) as made:
            await made.request(GET)
            with pytest.raises(ConnectionFailedError, match="it closed the connection without an answer"):
                await made.request(POST)

    asyncio.run(scenario())


def test_refused_credentials_are_renewed_once() -> None:
    tried: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        tried.append(request.headers["authorization"])
        return web.Response(status=200 if tried[-1] == "Bearer new" else 401)

    async def scenario() -> None:
        async with serving(handler) as access:
            assert (await ask(replace(access, credentials=Renewable("old", "new")))).status == 200
            assert (await ask(replace(access, credentials=Renewable("old", "older", "new")))).status == 401
            assert (await ask(access)).status == 401

    asyncio.run(scenario())
    assert tried == ["Bearer old", "Bearer new", "Bearer old", "Bearer older", "Bearer t"]


def test_a_redirect_is_not_followed() -> None:
    async def handler(_: web.Request) -> web.Response:
        raise web.HTTPFound("http://127.0.0.1:1/elsewhere")

    async def scenario() -> int:
        async with serving(handler) as access:
            return (await ask(access)).status

    assert asyncio.run(scenario()) == 302


def test_a_server_that_is_not_there_is_named() -> None:
    async def scenario() -> None:
        async with serving(hello) as access:
            pass
        with pytest.raises(ConnectionFailedError, match=f"cannot reach {access.server}: Connection refused"):
            await ask(access)

    asyncio.run(scenario())


def test_a_server_that_does_not_answer_is_given_up() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async def scenario() -> None:
        async with listening(silent) as access:
            with pytest.raises(ConnectionFailedError, match="did not answer in time"):
                await ask(access, seconds=0.05)
            with pytest.raises(ConnectionFailedError, match="did not answer in time"):
                async with transport(access, 0.05) as made, made.stream(GET):
                    pass

    asyncio.run(scenario())


def test_an_answer_that_breaks_off_is_a_fault() -> None:
    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{")

    async def scenario() -> None:
        async with listening(half) as access:
            with pytest.raises(ConnectionFailedError, match="cannot reach"):
                await ask(access)

    asyncio.run(scenario())


def test_a_server_that_does_not_speak_http_is_a_fault() -> None:
    async def noise(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"SSH-2.0-OpenSSH\r\n\r\n")

    async def scenario() -> None:
        async with listening(noise) as access:
            with pytest.raises(ConnectionFailedError, match="cannot reach"):
                await ask(access)

    asyncio.run(scenario())


def test_a_stream_gives_chunks_as_they_come_and_ends_when_left() -> None:
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

    async def scenario() -> None:
        async with serving(handler) as access, transport(access) as made:
            async with made.stream(GET) as stream:
                assert stream.status == 200
                chunks = aiter(stream.chunks)
                assert (await anext(chunks)).startswith(b"tick\n")
            await asyncio.wait_for(left.wait(), 5)

    asyncio.run(scenario())


def test_a_stream_that_breaks_off_is_a_fault() -> None:
    async def broken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ntick\n\r\n")

    async def scenario() -> None:
        async with listening(broken) as access, transport(access) as made, made.stream(GET) as stream:
            chunks = aiter(stream.chunks)
            assert await anext(chunks) == b"tick\n"
            with pytest.raises(ConnectionFailedError, match="cannot reach"):
                await anext(chunks)

    asyncio.run(scenario())


def test_many_open_streams_do_not_take_the_places_of_requests() -> None:
    async def scenario() -> None:
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

    asyncio.run(scenario())


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def server_context(authority: trustme.CA, name: str = "127.0.0.1") -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(name).configure_cert(context)
    return context


def pem(authority: trustme.CA) -> bytes:
    return authority.cert_pem.bytes()


async def ask_tls(context: ssl.SSLContext, tls: TLS) -> int:
    async with serving(hello, context) as access:
        return (await ask(replace(access, tls=tls))).status


def test_a_server_is_trusted_by_its_authority(authority: trustme.CA) -> None:
    assert asyncio.run(ask_tls(server_context(authority), TLS(pem(authority)))) == 200


def test_a_server_of_another_authority_is_not(authority: trustme.CA) -> None:
    with pytest.raises(ConnectionFailedError, match=r"its certificate is not trusted: .*unable to get local issuer"):
        asyncio.run(ask_tls(server_context(authority), TLS(pem(trustme.CA()))))


def test_an_authority_that_was_replaced_is_read_again(authority: trustme.CA, tmp_path: Path) -> None:
    """The authority of a cluster is replaced while its pods run; without this, a manager could never lead again."""
    file = tmp_path / "ca.crt"
    file.write_bytes(pem(trustme.CA()))
    trust = TLS(file.read_bytes(), file=file)

    async def scenario() -> int:
        async with (
            serving(hello, server_context(authority)) as access,
            transport(replace(access, tls=trust)) as made,
        ):
            with pytest.raises(ConnectionFailedError, match="its certificate is not trusted"):
                await made.request(GET)
            file.write_bytes(pem(authority))
            return (await made.request(GET)).status

    assert asyncio.run(scenario()) == 200


@pytest.mark.parametrize("content", [None, b"", b"text"], ids=["gone", "empty", "not PEM"])
def test_an_authority_that_cannot_be_read_again_is_an_error_like_others(
    authority: trustme.CA, tmp_path: Path, content: bytes | None
) -> None:
    """Whoever repeats requests after errors goes on, until the file is complete."""
    file = tmp_path / "ca.crt"
    trust = TLS(pem(trustme.CA()), file=file)
    if content is not None:
        file.write_bytes(content)

    async def scenario() -> int:
        async with (
            serving(hello, server_context(authority)) as access,
            transport(replace(access, tls=trust)) as made,
        ):
            for _ in range(2):
                with pytest.raises(ConnectionFailedError, match="its certificate is not trusted"):
                    await made.request(GET)
            file.write_bytes(pem(authority))
            return (await made.request(GET)).status

    assert asyncio.run(scenario()) == 200


def test_a_server_of_another_name_is_not_unless_that_name_is_given(authority: trustme.CA) -> None:
    context = server_context(authority, "kubernetes.default")

    with pytest.raises(ConnectionFailedError, match=r"its certificate is not trusted: .*IP address mismatch"):
        asyncio.run(ask_tls(context, TLS(pem(authority))))
    assert asyncio.run(ask_tls(context, TLS(pem(authority), server_name="kubernetes.default"))) == 200


def test_verification_can_be_skipped(authority: trustme.CA) -> None:
    assert asyncio.run(ask_tls(server_context(authority, "elsewhere"), TLS(insecure=True))) == 200


def test_an_authority_that_is_no_certificate_names_its_entry() -> None:
    with pytest.raises(ConfigError, match=r"config: ca: not a PEM certificate"):
        asyncio.run(ask(Access("https://127.0.0.1:1", token("t"), TLS(b"no", entry="config: ca"))))


def certificate(leaf: trustme.LeafCert) -> StoredCredentials:
    chain = b"".join(one.bytes() for one in leaf.cert_chain_pems)
    key = leaf.private_key_pem.bytes()
    return StoredCredentials(token=NOTHING, certificate=Material("cert", chain), key=Material("key", key))


def test_a_client_certificate_is_shown(authority: trustme.CA) -> None:
    context = server_context(authority)
    context.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(context)

    async def handler(request: web.Request) -> web.Response:
        assert request.transport is not None
        subject = dict(pair for (pair,) in request.transport.get_extra_info("peercert")["subject"])
        return web.json_response(subject.get("commonName"))

    async def scenario() -> bytes:
        async with serving(handler, context) as access:
            credentials = certificate(authority.issue_cert("alice", common_name="alice"))
            return (await ask(replace(access, credentials=credentials, tls=TLS(pem(authority))))).body

    assert asyncio.run(scenario()) == b'"alice"'


def test_a_key_that_does_not_fit_is_an_error_not_a_question(authority: trustme.CA) -> None:
    one, other = authority.issue_cert("a"), authority.issue_cert("b")
    credentials = StoredCredentials(
        token=NOTHING,
        certificate=Material("cert", one.cert_chain_pems[0].bytes()),
        key=Material("key", other.private_key_pem.bytes()),
    )

    with pytest.raises(ConfigError, match="the client certificate and key do not fit together"):
        asyncio.run(ask(Access("https://127.0.0.1:1", credentials)))


def test_a_proxy_is_asked_for_the_server() -> None:
    seen: list[str] = []

    async def proxying(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append((await reader.readuntil(b"\r\n\r\n")).decode().splitlines()[0])
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    async def scenario() -> None:
        async with listening(proxying) as access:
            assert (await ask(Access("http://api.example:80", token("t"), proxy=access.server))).status == 200

    asyncio.run(scenario())
    assert seen == ["GET http://api.example/version HTTP/1.1"]


def test_a_proxy_over_tls_is_trusted_by_the_same_authority_for_a_server_without_tls(authority: trustme.CA) -> None:
    async def ask_through(trusted: trustme.CA) -> int:
        async with serving(hello, server_context(authority)) as proxy:
            access = Access("http://api.example:80", token("t"), tls=TLS(pem(trusted)), proxy=proxy.server)
            return (await ask(access)).status

    assert asyncio.run(ask_through(authority)) == 200
    with pytest.raises(ConnectionFailedError, match="not trusted"):
        asyncio.run(ask_through(trustme.CA()))


def test_a_proxy_that_refuses_is_told_without_its_password() -> None:
    async def refusing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async def scenario() -> None:
        async with listening(refusing) as access:
            through = access.server.replace("http://", "http://me:s3cret@")
            with pytest.raises(ConnectionFailedError) as caught:
                await ask(Access("https://api.example:6443", token("t"), proxy=through))
        said = "cannot reach https://api.example:6443: its proxy answered 407 Proxy Authentication Required"
        assert str(caught.value) == said

    asyncio.run(scenario())


def test_channels_carry_pieces_of_several_streams() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=(channels.EXEC_PROTOCOL,))
        await socket.prepare(request)
        assert socket.ws_protocol == channels.EXEC_PROTOCOL
        async for message in socket:
            assert message.type is WSMsgType.BINARY
            if message.data[0] == channels.CLOSE:
                break
            await socket.send_bytes(bytes([channels.STDOUT]) + message.data[1:].upper())
        await socket.send_bytes(bytes([channels.STATUS]) + b'{"status":"Success"}')
        await socket.close()
        return socket

    async def scenario() -> list[tuple[int, bytes]]:
        async with (
            serving(handler) as access,
            transport(access) as made,
            made.channels("/exec", (("command", "cat"),), channels.EXEC_PROTOCOL) as streams,
        ):
            await streams.send(channels.STDIN, b"hello")
            await streams.close_stream(channels.STDIN)
            pieces = []
            while piece := await streams.receive():
                pieces.append(piece)
            return pieces

    assert asyncio.run(scenario()) == [(channels.STDOUT, b"HELLO"), (channels.STATUS, b'{"status":"Success"}')]


def test_channels_that_are_refused_say_why() -> None:
    async def handler(request: web.Request) -> web.Response:
        if request.headers.get("upgrade") != "websocket":
            return web.json_response({"kind": "Status", "code": 400, "message": "Upgrade request required"}, status=400)
        status = {"kind": "Status", "code": 404, "reason": "NotFound", "message": 'pods "web" not found'}
        return web.json_response(status, status=404)

    async def scenario() -> None:
        async with (
            serving(handler) as access,
            transport(access) as made,
            made.channels("/exec", (), channels.EXEC_PROTOCOL),
        ):
            pass

    with pytest.raises(NotFoundError, match='pods "web" not found'):
        asyncio.run(scenario())
