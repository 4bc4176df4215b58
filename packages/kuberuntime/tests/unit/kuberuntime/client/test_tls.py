"""Tests the HTTP transport with TLS servers, proxies and channels."""

import asyncio
import ssl
from dataclasses import replace
from pathlib import Path

import pytest
import trustme
from aiohttp import WSMsgType, web
from tests.unit.kuberuntime.client.httpserver import (
    GET,
    NOTHING,
    ask,
    hello,
    listening,
    serving,
    token,
    transport,
)

from kuberuntime.access.access import TLS, Access
from kuberuntime.access.credentials import SecretEntry, StoredCredentials
from kuberuntime.client import channels
from kuberuntime.errors import APIError, ConfigError, ConnectionFailedError, NotFoundError


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


def test_server_of_the_trusted_authority_is_accepted(authority: trustme.CA) -> None:
    assert asyncio.run(ask_tls(server_context(authority), TLS(pem(authority)))) == 200


def test_server_of_a_different_authority_is_rejected(authority: trustme.CA) -> None:
    with pytest.raises(ConnectionFailedError, match=r"its certificate is not trusted: .*unable to get local issuer"):
        asyncio.run(ask_tls(server_context(authority), TLS(pem(trustme.CA()))))


def test_replaced_authority_file_is_read_again(authority: trustme.CA, tmp_path: Path) -> None:
    """The CA of a cluster is replaced while its pods run. Otherwise, a manager could never become leader again."""
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
def test_unreadable_authority_is_a_connection_error(
    authority: trustme.CA, tmp_path: Path, content: bytes | None
) -> None:
    """A client that retries failed requests succeeds when the file is complete."""
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


def test_server_of_a_different_name_is_rejected_unless_given(authority: trustme.CA) -> None:
    context = server_context(authority, "kubernetes.default")

    with pytest.raises(ConnectionFailedError, match=r"its certificate is not trusted: .*IP address mismatch"):
        asyncio.run(ask_tls(context, TLS(pem(authority))))
    assert asyncio.run(ask_tls(context, TLS(pem(authority), server_name="kubernetes.default"))) == 200


def test_verification_can_be_skipped(authority: trustme.CA) -> None:
    assert asyncio.run(ask_tls(server_context(authority, "elsewhere"), TLS(insecure=True))) == 200


def test_malformed_authority_is_named_in_the_error() -> None:
    with pytest.raises(ConfigError, match=r"config: ca: invalid PEM certificate"):
        asyncio.run(ask(Access("https://127.0.0.1:1", token("t"), TLS(b"no", entry="config: ca"))))


def certificate(leaf: trustme.LeafCert) -> StoredCredentials:
    chain = b"".join(one.bytes() for one in leaf.cert_chain_pems)
    key = leaf.private_key_pem.bytes()
    return StoredCredentials(token=NOTHING, certificate=SecretEntry("cert", chain), key=SecretEntry("key", key))


def test_client_certificate_is_presented(authority: trustme.CA) -> None:
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


def test_key_of_a_different_certificate_is_an_error(authority: trustme.CA) -> None:
    one, other = authority.issue_cert("a"), authority.issue_cert("b")
    credentials = StoredCredentials(
        token=NOTHING,
        certificate=SecretEntry("cert", one.cert_chain_pems[0].bytes()),
        key=SecretEntry("key", other.private_key_pem.bytes()),
    )

    with pytest.raises(ConfigError, match="the client certificate and key do not match"):
        asyncio.run(ask(Access("https://127.0.0.1:1", credentials)))


async def test_request_is_sent_through_the_proxy() -> None:
    seen: list[str] = []

    async def proxying(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append((await reader.readuntil(b"\r\n\r\n")).decode().splitlines()[0])
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    async with listening(proxying) as access:
        assert (await ask(Access("http://api.example:80", token("t"), proxy=access.server))).status == 200
    assert seen == ["GET http://api.example/version HTTP/1.1"]


def test_proxy_over_tls_is_verified_with_the_same_authority(authority: trustme.CA) -> None:
    async def ask_through(trusted: trustme.CA) -> int:
        async with serving(hello, server_context(authority)) as proxy:
            access = Access("http://api.example:80", token("t"), tls=TLS(pem(trusted)), proxy=proxy.server)
            return (await ask(access)).status

    assert asyncio.run(ask_through(authority)) == 200
    with pytest.raises(ConnectionFailedError, match="not trusted"):
        asyncio.run(ask_through(trustme.CA()))


async def test_refusal_of_a_proxy_is_reported_without_its_password() -> None:
    async def refusing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async with listening(refusing) as access:
        through = access.server.replace("http://", "http://me:s3cret@")
        with pytest.raises(ConnectionFailedError) as caught:
            await ask(Access("https://api.example:6443", token("t"), proxy=through))
    said = "cannot reach https://api.example:6443: its proxy responded with 407 Proxy Authentication Required"
    assert str(caught.value) == said


def test_channel_carries_several_streams() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=(channels.EXEC_PROTOCOL,))
        await socket.prepare(request)
        assert socket.ws_protocol == channels.EXEC_PROTOCOL
        await socket.send_bytes(bytes([channels.STDOUT]))  # a kubelet also sends an empty message first
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


def test_channel_accepts_any_media_type() -> None:
    """A kubelet does not declare media types for its streams, and returns 406 for Accept headers without `*/*`."""
    accepted = []

    async def handler(request: web.Request) -> web.Response:
        accepted.append((request.headers.get("upgrade"), request.headers["accept"]))
        return web.Response(status=406, text="406: Not Acceptable")

    async def scenario() -> None:
        async with serving(handler) as access, transport(access) as made, made.channels("/exec", (), "v5"):
            pass

    with pytest.raises(APIError, match="406"):
        asyncio.run(scenario())
    assert accepted == [("websocket", "*/*")] * 2


def test_rejected_channel_raises_the_error_of_the_server() -> None:
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
