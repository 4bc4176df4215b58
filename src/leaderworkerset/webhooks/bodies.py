"""Reads the bodies of reviews within bounds of time and memory, since anyone can send one.

A usual review is small and has a Content-Length. Of those that are large or have none, only few are read concurrently,
so that the memory of all bodies is bounded.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final, TypeAlias

from aiohttp import web

from kuberuntime import timeouts

SECONDS: Final = 10.0
"""The time limit for a body: as long as API servers wait for the whole answer."""

USUAL: Final = 256 * 1024
"""The size in bytes up to which bodies are read at once, on all connections."""

LARGE_AT_ONCE: Final = 8

Receiving: TypeAlias = Callable[[asyncio.BaseTransport | None, float], AbstractContextManager[None]]
"""Reports that a body is read from a connection, for so many seconds at most (`Acceptor.receiving`)."""

TO_REFUSE: Final = 1.0
"""Seconds after the time limit in which the connection stays open for the answer that the body was too slow."""


class Bodies:
    """Reads bodies; only some large ones concurrently."""

    def __init__(self, receiving: Receiving, seconds: float = SECONDS) -> None:
        self._receiving = receiving
        self._seconds = seconds
        self._large = asyncio.Semaphore(LARGE_AT_ONCE)

    async def read(self, request: web.Request) -> bytes:
        """Return the body; answer 408 if it is not complete in time."""
        try:
            with self._receiving(request.transport, self._seconds + TO_REFUSE):
                return await self._read(request)
        except TimeoutError as error:
            raise web.HTTPRequestTimeout(headers={"connection": "close"}) from error
        except ConnectionError as error:  # the client is gone and cannot read this
            raise web.HTTPBadRequest(text="the body ended early") from error

    async def _read(self, request: web.Request) -> bytes:
        async with timeouts.within(self._seconds):
            if request.content_length is not None and request.content_length <= USUAL:
                return await request.read()
            async with self._large:
                return await request.read()
