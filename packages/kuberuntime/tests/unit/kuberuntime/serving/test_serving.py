"""Tests listen addresses, server TLS, probes, and certificate files."""

import asyncio
import socket
import ssl
from pathlib import Path

import pytest
from aiohttp import ClientSession, web
from testkit import certificates
from trustme import KeyType

from kuberuntime.errors import ConfigError
from kuberuntime.serving import certfiles, limitlistener, serving
from kuberuntime.serving.bindaddresses import Address, parse_address
from kuberuntime.serving.certfiles import INTERVAL, CertificateFiles
from kuberuntime.serving.serving import Listener, TLSSettings

SERVING = certificates.issue()
OTHER = certificates.issue()


@pytest.mark.parametrize("text", ["8443", "host", ":x", ":70000", "host:"])
def test_malformed_address_is_an_error(text: str) -> None:
    with pytest.raises(ConfigError, match="must be host:port"):
        parse_address(text)


def test_port_in_use_is_an_error() -> None:
    async def scenario(port: int) -> None:
        with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{port}"):
            async with Listener(web.Application(), Address("127.0.0.1", port)):
                pass

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        asyncio.run(scenario(taken.getsockname()[1]))


def has_ipv6() -> bool:
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            return False
    return True


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
@pytest.mark.parametrize("text", [":{}", "0.0.0.0:{}", "[::]:{}"])
def test_unspecified_address_listens_on_both_families(text: str) -> None:
    """On an IPv6-only cluster, probes of a pod that listens on 0.0.0.0 would fail (R-OP-11)."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    async def scenario() -> list[int]:
        async with Listener(web.Application(), parse_address(text.format(port))):
            return [reach(socket.AF_INET, "127.0.0.1"), reach(socket.AF_INET6, "::1")]

    def reach(family: socket.AddressFamily, host: str) -> int:
        with socket.socket(family) as client:
            return client.connect_ex((host, port))

    assert asyncio.run(scenario()) == [0, 0]


def test_tls_settings_are_applied_to_the_context() -> None:
    context = serving.server_context(
        SERVING.chain, TLSSettings(ssl.TLSVersion.TLSv1_3, "ECDHE-ECDSA-AES128-GCM-SHA256")
    )
    assert context.minimum_version is ssl.TLSVersion.TLSv1_3
    names = {cipher["name"] for cipher in context.get_ciphers()}
    assert {name for name in names if not name.startswith("TLS_")} == {"ECDHE-ECDSA-AES128-GCM-SHA256"}


def test_certificate_with_a_different_key_is_an_error() -> None:
    with pytest.raises(ConfigError, match="do not match"):
        serving.server_context(SERVING.certificate + OTHER.key)


@pytest.mark.parametrize("before", KeyType)
@pytest.mark.parametrize("after", KeyType)
async def test_replaced_certificate_is_served_with_any_key_type(before: KeyType, after: KeyType) -> None:
    """An OpenSSL context contains one certificate per key type, and prefers some types."""
    replacement = certificates.issue(after)
    context = serving.server_context(certificates.issue(before).chain)
    serving.replace_chain(context, certificates.issue(after).chain)
    serving.replace_chain(context, replacement.chain)
    async with Listener(web.Application(), Address("127.0.0.1", 0), context) as server:
        trust = ssl.create_default_context(cadata=certificates.TRUSTED.decode())
        trust.set_alpn_protocols(["h2", "http/1.1"])
        _, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=trust)
        connection = writer.get_extra_info("ssl_object")
        writer.close()
    assert connection.getpeercert(True) == ssl.PEM_cert_to_DER_cert(replacement.certificate.decode())
    assert connection.selected_alpn_protocol() == "http/1.1"


@pytest.mark.parametrize(("ready", "status", "text"), [(True, 200, "ok"), (False, 503, "not ready: caches")])
async def test_probes_name_failed_checks(ready: bool, status: int, text: str) -> None:
    checks = {"caches": lambda: ready, "webhooks": lambda: True}
    application = serving.application(liveness="/healthz", readiness="readyz", checks=checks)
    async with Listener(application, Address("127.0.0.1", 0)) as listener, ClientSession() as client:
        async with client.get(f"http://127.0.0.1:{listener.port}/readyz") as answer:
            assert (answer.status, await answer.text()) == (status, text)
        async with client.get(f"http://127.0.0.1:{listener.port}/healthz") as answer:
            assert (answer.status, await answer.text()) == (200, "ok")


def test_probes_do_not_wait_for_a_request_body() -> None:
    """aiohttp waits ten seconds for the body, even if the client has disconnected."""

    async def scenario() -> bytes:
        application = serving.application(liveness="/healthz", readiness="readyz", checks={})
        async with Listener(application, Address("127.0.0.1", 0)) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n")
            async with asyncio.timeout(8):
                received = await reader.read()
            writer.close()
            return received

    assert asyncio.run(scenario()).startswith(b"HTTP/1.1 200")


async def test_tls_connection_closed_twice_can_be_aborted() -> None:
    """Before Python 3.11.3, `abort` alone raises AttributeError in this case."""
    async with Listener(web.Application(), Address("127.0.0.1", 0), serving.server_context(SERVING.chain)) as server:
        trust = ssl.create_default_context(cadata=certificates.TRUSTED.decode())
        _, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=trust)
        transport = writer.transport
        assert isinstance(transport, asyncio.Transport)
        transport.close()
        transport.close()
        limitlistener.abort(transport)


class Readings:
    """Counts how often files are read."""

    def __init__(self) -> None:
        self.failed: list[bool] = []

    def read_certificate(self, *, failed: bool) -> None:
        self.failed.append(failed)


def write(directory: Path, certificate: bytes, key: bytes) -> None:
    (directory / certfiles.CERTIFICATE).write_bytes(certificate)
    (directory / certfiles.KEY).write_bytes(key)


@pytest.mark.virtual_time
async def test_renewed_key_pair_is_used_only_when_complete(tmp_path: Path) -> None:
    readings, used = Readings(), list[bytes]()

    async def use(chain: bytes) -> None:
        used.append(chain)

    files = CertificateFiles(tmp_path, readings)
    found = [files.exist]
    task = asyncio.create_task(files.follow(use))
    await asyncio.sleep(INTERVAL / 2)
    assert used == []
    write(tmp_path, SERVING.certificate, SERVING.key)
    await asyncio.sleep(INTERVAL)
    found.append(files.exist)
    assert found == [False, True]
    assert used == [SERVING.chain]
    write(tmp_path, OTHER.certificate, SERVING.key)
    await asyncio.sleep(INTERVAL)
    write(tmp_path, OTHER.certificate, OTHER.key)
    await asyncio.sleep(INTERVAL)
    await asyncio.sleep(INTERVAL)
    assert used == [SERVING.chain, OTHER.chain]
    assert readings.failed == [True, False, True, False, False]
    task.cancel()
    await asyncio.wait([task])
