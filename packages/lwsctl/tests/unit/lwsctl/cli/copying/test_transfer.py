"""Tests streams between this machine and tar in a container."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

import pytest

from kuberuntime.client import channels
from lwsctl.cli.cluster.target import Session
from lwsctl.cli.copying.archive import unpack
from lwsctl.cli.copying.transfer import RankContainer, download, upload
from lwsctl.cli.errors import CommandError


class ReadingForever:
    """The session and the streams of a command that reads all input and does not exit."""

    def __init__(self) -> None:
        self.was_sent = asyncio.Event()

    @asynccontextmanager
    async def channels(self, *_: Any) -> AsyncIterator["ReadingForever"]:
        yield self

    async def send(self, _channel: int, _data: bytes) -> None:
        self.was_sent.set()

    async def receive(self) -> None:
        await asyncio.Event().wait()


class WritingForever:
    """The session and the streams of a command that prints invalid data forever."""

    @asynccontextmanager
    async def channels(self, *_: Any) -> AsyncIterator["WritingForever"]:
        yield self

    async def receive(self) -> tuple[int, bytes]:
        await asyncio.sleep(0)
        return channels.STDOUT, b"garbage!" * 1024


def rank_of(peer: object) -> RankContainer:
    return RankContainer(cast("Session", peer), {"metadata": {"name": "web-0", "namespace": "default"}}, "main")


async def test_download_ends_when_an_endless_output_is_invalid(tmp_path: Path) -> None:
    read = partial(unpack, destination=tmp_path, name="got")
    with pytest.raises(CommandError, match="archive from the container is truncated or invalid"):
        await download(rank_of(WritingForever()), ("tar",), read)


async def test_interrupted_copy_leaves_no_unretrieved_error() -> None:
    unread: list[str] = []

    def write_forever(stream: IO[bytes]) -> None:
        while True:
            stream.write(b"x")

    asyncio.get_running_loop().set_exception_handler(lambda _, context: unread.append(context["message"]))
    peer = ReadingForever()
    copying = asyncio.create_task(upload(rank_of(peer), ("tar",), write_forever))
    await peer.was_sent.wait()
    copying.cancel()
    with suppress(asyncio.CancelledError):
        await copying
    del copying
    gc.collect()
    assert unread == []
