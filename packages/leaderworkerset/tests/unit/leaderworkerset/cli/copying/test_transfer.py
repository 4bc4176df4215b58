"""Streams between this machine and tar in a container."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import IO, Any, cast

from leaderworkerset.cli.cluster.target import Session
from leaderworkerset.cli.copying.transfer import RankContainer, upload


class ReadingForever:
    """The session and the streams of a command that reads everything and does not end."""

    def __init__(self) -> None:
        self.was_sent = asyncio.Event()

    @asynccontextmanager
    async def channels(self, *_: Any) -> AsyncIterator["ReadingForever"]:
        yield self

    async def send(self, _channel: int, _data: bytes) -> None:
        self.was_sent.set()

    async def receive(self) -> None:
        await asyncio.Event().wait()


async def test_an_interrupted_copy_leaves_no_error_that_nobody_reads() -> None:
    unread: list[str] = []

    def write_forever(stream: IO[bytes]) -> None:
        while True:
            stream.write(b"x")

    asyncio.get_running_loop().set_exception_handler(lambda _, context: unread.append(context["message"]))
    peer = ReadingForever()
    rank = RankContainer(cast("Session", peer), {"metadata": {"name": "web-0", "namespace": "default"}}, "main")
    copying = asyncio.create_task(upload(rank, ("tar",), write_forever))
    await peer.was_sent.wait()
    copying.cancel()
    with suppress(asyncio.CancelledError):
        await copying
    del copying
    gc.collect()
    assert unread == []
