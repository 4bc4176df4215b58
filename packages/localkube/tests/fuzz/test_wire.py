"""Tests that no bytes on a connection cause a task leak, a descriptor leak, or a traceback."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import pytest
from tests.fuzz import requests, wire
from tests.fuzz.seeds import seeds
from tests.fuzz.wire import POD, Wire

LENGTH = 60
"""The number of connections that are generated from one seed."""

PROTOCOLS = ("v4.channel.k8s.io", "v5.channel.k8s.io", "SPDY/3.1+portforward.k8s.io", "odd", "")
PATHS = (
    f"{POD}/exec?command=cat&stdin=true&stdout=true", f"{POD}/exec?command=cat&stdin=true&tty=true", f"{POD}/exec?command=odd", f"{POD}/exec",
    f"{POD}/attach?stdout=true", f"{POD}/attach?stdin=true", f"{POD}/portforward", f"{POD}/portforward?ports=1", f"{POD}/portforward?ports=%d9%a3",
    f"{POD}/portforward?ports={'9' * 5000}", f"{POD}/log", "/api/v1/namespaces/default/pods/absent/exec?command=cat", f"{POD}/exec?container=odd&command=cat",
)  # fmt: skip

Send = Callable[[Wire, Random], Awaitable[tuple[bytes, bytes]]]


async def ask(server: Wire, random: Random) -> tuple[bytes, bytes]:
    """Send a request. Return the request and the response."""
    made = requests.Requests(random.randrange(2**32), KINDS).sequence(4)[-1]
    content = wire.raw_request(random, server.port, made)
    return content, await server.exchange(content)


async def upgrade(server: Wire, random: Random) -> tuple[bytes, bytes]:
    """Request a WebSocket and send frames. Return the sent bytes and the response."""
    protocol, path = random.choice(PROTOCOLS), random.choice(PATHS)
    opening = wire.upgrade(server.port, path, protocol)
    frames = wire.spdy_frames(random) if "portforward" in path else wire.channel_frames(random)
    return b"".join([opening, *frames]), await server.exchange(opening, *frames)


KINDS = requests.served()


@pytest.mark.parametrize("send", [ask, upgrade])
def test_every_connection_is_answered_and_forgotten(send: Send) -> None:
    for seed in seeds(12):
        asyncio.run(_try(seed, send))


async def _try(seed: int, send: Send) -> None:
    random = Random(seed)
    unhandled: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(str(context)))
    async with wire.listening() as server:
        await server.plain()
        tasks, files = len(asyncio.all_tasks()), wire.descriptors()
        for _ in range(LENGTH):
            with wire.errors() as logged:
                sent, answer = await send(server, random)
            again = f"seed {seed} (again: SEEDS={seed}-{seed + 1}): {sent[:3000]!r} is answered with {answer[:1000]!r}"
            assert not logged, f"{again} and logs {logged[0]}"
            assert not unhandled, f"{again} and leaves {unhandled[0]}"
            assert (
                not answer.startswith(b"HTTP/1.1 500") or b"should not be set" in answer or b"typed patch" in answer
            ), again
        assert (await server.plain()).startswith((b"HTTP/1.1 200", b"HTTP/1.1 404")), seed
        async with asyncio.timeout(wire.PATIENCE):
            while len(asyncio.all_tasks()) > tasks or wire.descriptors() > files:  # noqa: ASYNC110 - nothing tells when
                await asyncio.sleep(0.01)
