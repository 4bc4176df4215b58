"""Tests that the metrics and probe ports respond to or reject any bytes, without leaks.

Plain HTTP and TLS, right and wrong tokens, headers of any size, bodies that nobody asked for, requests that stop in the
middle, and connections that are not HTTP.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Final

import msgspec
import pytest
from testkit.fakes import respond
from testkit.transports import RequestTransport
from tests.fuzz import junk, wire
from tests.fuzz.seeds import seeds

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request, Response
from kuberuntime.clock import SystemClock
from kuberuntime.errors import ConnectionFailedError
from kuberuntime.serving import delegatedauth, serving
from kuberuntime.serving.bindaddresses import Address
from kuberuntime.serving.delegatedauth import Authorizer
from kuberuntime.serving.metrics import CONTENT_TYPE
from kuberuntime.serving.serving import Listener, server_context
from leaderworkerset.webhooks import certificates

LENGTH: Final = 80
AT_ONCE: Final = 16
"""The number of connections for each seed, and the number of concurrent ones."""

TOKEN: Final = "the-token"
LOOPBACK: Final = "127.0.0.1"
METHODS: Final = ("GET", "GET", "GET", "HEAD", "POST", "OPTIONS", "PRI", "CONNECT", "get", "G\udcff")
TARGETS: Final = (
    "/metrics", "/metrics?name[]=x", "/healthz", "/readyz", "/", "*", "//", "/metrics/../metrics", "/%2e%2e", "/%", "/%ff", "/\udcff", "/a?" + "b&" * 900,
    "http://x/metrics", "/" + "a" * 9000, "/metrics#x", "x", "",
)  # fmt: skip
VALUES: Final = (
    "Bearer", "Bearer ", f"Bearer {TOKEN}", f"bearer   {TOKEN} ", "Bearer \udcff\udcfe", "Bearer \u20ac", "Bearer " + "x" * 5000, "Basic eDp4", "\udcff", "",
    "Bearer a b", "Negotiate", "Bearer lost", "Bearer odd",
)  # fmt: skip


class Reviewer(RequestTransport):
    """An API server that accepts one token, and sends unusual responses to some other tokens."""

    async def request(self, request: Request) -> Response:
        spec = msgspec.json.decode(request.body)["spec"]
        match spec.get("token"):
            case None:
                return respond(201, {"status": {"allowed": True}})
            case "lost":
                raise ConnectionFailedError("nobody answers")
            case "odd":
                return respond(201, {"status": {"authenticated": True, "user": None}})
            case token:
                return respond(201, {"status": {"authenticated": token == TOKEN, "user": {"username": "u"}}})


@dataclass
class Port:
    """A listening port, with the TLS context for valid requests."""

    number: int
    trusting: ssl.SSLContext | None

    async def exchange(self, content: bytes, *, plainly: bool, patience: float = wire.QUIET) -> bytes:
        """Send bytes and return the response. TLS is used if the port supports it and `plainly` is false."""
        context = None if plainly else self.trusting
        reader, writer = await asyncio.open_connection(LOOPBACK, self.number, ssl=context)
        received = b""
        try:
            writer.write(content)
            while piece := await asyncio.wait_for(reader.read(65536), patience):
                received += piece
        except (TimeoutError, ConnectionError):
            pass
        finally:
            writer.close()
        return received


def hostile(random: Random) -> bytes:
    """Return bytes that a client might send."""
    if random.random() < 0.1:
        return random.randbytes(random.randrange(1, 300))
    headers = {"Host": random.choice(("x", "", "\udcff", "a" * 300)), "Authorization": random.choice(VALUES)}
    body = b""
    match random.randrange(9):
        case 0:
            headers["x"] = "a" * random.choice((8000, 8190, 9000, 70000))
        case 1:
            headers |= {f"x-{number}": "y" for number in range(random.choice((50, 500, 5000)))}
        case 2:
            body = random.randbytes(random.choice((10, 3000)))
            headers["Content-Length"] = random.choice((str(len(body)), "5", "-1", "99999999999999999999", "x", "1, 2"))
        case 3:
            headers["Transfer-Encoding"] = random.choice(("chunked", "gzip, chunked", "odd", "chunked, chunked"))
            body = random.choice((b"5\r\nhello\r\n0\r\n\r\n", b"fffffffffff\r\n", b"-1\r\n", b"5;a=b\r\nhel", b"\xff"))
        case 4:
            headers |= {"Expect": random.choice(("100-continue", "odd")), "Content-Length": "3"}
        case 5:
            headers |= {"Connection": random.choice(("Upgrade, close", "keep-alive")), "Upgrade": "websocket"}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    version = random.choice(("1.1", "1.1", "1.1", "1.0", "2.0", "9", ""))
    text = f"{random.choice(METHODS)} {random.choice(TARGETS)} HTTP/{version}\r\n{lines}\r\n"
    content = text.encode("utf-8", "surrogateescape") + body
    whole = content * random.choice((1, 1, 1, 5))
    return junk.damaged(random, whole) if random.random() < 0.2 else whole


@asynccontextmanager
async def listening(*, tls: bool) -> AsyncIterator[tuple[Port, Port]]:
    """Serve metrics and probes, and yield their ports."""
    authority = certificates.create_authority(datetime.now(UTC))
    chain = certificates.issue(authority, [LOOPBACK], datetime.now(UTC)).chain
    trusting = ssl.create_default_context(cadata=authority.certificate.decode()) if tls else None
    authorizer = Authorizer(Client(Reviewer()), SystemClock())
    metrics = delegatedauth.application("/metrics", lambda: b"up 1\n" * 1000, CONTENT_TYPE, authorizer)
    probes = serving.application(liveness="healthz", readiness="readyz", checks={"caches": lambda: True})
    here = Address(LOOPBACK, 0)
    async with (
        Listener(metrics, here, server_context(chain) if tls else None, name="metrics") as first,
        Listener(probes, here, name="probes") as second,
    ):
        yield Port(first.port, trusting), Port(second.port, None)


async def honest(port: Port, path: str) -> bytes:
    """Return the first line of the response to a valid request."""
    content = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n"
    return (await port.exchange(content.encode(), plainly=False, patience=wire.PATIENCE)).split(b"\r\n")[0]


@pytest.mark.parametrize("tls", [True, False])
def test_metrics_and_probes_answer_any_request(*, tls: bool) -> None:
    for seed in seeds(6):
        asyncio.run(_try(seed, tls=tls))


async def _try(seed: int, *, tls: bool) -> None:
    random = Random(seed)
    unhandled: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(str(context)))
    async with listening(tls=tls) as (metrics, probes):
        assert await honest(metrics, "/metrics") == b"HTTP/1.1 200 OK"
        tasks, files = len(asyncio.all_tasks()), wire.descriptors()
        for _ in range(LENGTH // AT_ONCE):
            sent = [(random.choice((metrics, probes)), hostile(random), random.random() < 0.2) for _ in range(AT_ONCE)]
            with wire.errors() as logged:
                answers = await asyncio.gather(*(port.exchange(one, plainly=plainly) for port, one, plainly in sent))
            again = f"seed {seed} (again: SEEDS={seed}-{seed + 1})"
            assert not logged, f"{again}: one of {[one[:500] for _, one, _ in sent]} logs {logged[0]}"
            assert not unhandled, f"{again}: one of {[one[:500] for _, one, _ in sent]} leaves {unhandled[0]}"
            for (_, content, _), received in zip(sent, answers, strict=True):
                assert b"HTTP/1.1 500" not in received, f"{again}: {content[:2000]!r} is answered with {received!r}"
        assert await honest(metrics, "/metrics") == b"HTTP/1.1 200 OK"
        assert await honest(probes, "/readyz") == b"HTTP/1.1 200 OK"
        async with asyncio.timeout(wire.PATIENCE):
            while len(asyncio.all_tasks()) > tasks or wire.descriptors() > files:  # noqa: ASYNC110 - nothing tells when
                await asyncio.sleep(0.01)
