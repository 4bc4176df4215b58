"""Reading the bodies of reviews within bounds of time and memory, since anyone can send one.

A usual review is small and says how long it is. Of those that are large or do not say, few are read at the same time;
so the memory of all bodies is bounded, whatever is sent.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final, TypeAlias

from aiohttp import web

from kuberuntime import timeouts

SECONDS: Final = 10.0
"""In which a body has to be there: as long as API servers wait for the whole answer."""

USUAL: Final = 256 * 1024
"""Bytes up to which bodies are read at once, as many as there are connections."""

LARGE_AT_ONCE: Final = 8

Receiving: TypeAlias = Callable[[asyncio.BaseTransport | None, float], AbstractContextManager[None]]
"""Notes that a body is read from a connection, for so many seconds at most (`Acceptor.receiving`)."""

TO_REFUSE: Final = 1.0
"""Seconds beyond the time for a body, in which the connection is still there for the answer that it was too slow."""


class Bodies:
    """Reads bodies; of large ones, only some at once."""

    def __init__(self, receiving: Receiving, seconds: float = SECONDS) -> None:
        self._receiving = receiving
        self._seconds = seconds
        self._large = asyncio.Semaphore(LARGE_AT_ONCE)

    async def read(self, request: web.Request) -> bytes:
        """Return the body; answer 408 where it is not there in time."""
        try:
            with self._receiving(request.transport, self._seconds + TO_REFUSE):
                return await self._read(request)
        except TimeoutError as error:
            raise web.HTTPRequestTimeout(headers={"connection": "close"}) from error
        except ConnectionError as error:  # nobody is there to read this
            raise web.HTTPBadRequest(text="the body ended early") from error

    async def _read(self, request: web.Request) -> bytes:
        async with timeouts.within(self._seconds):
            if request.content_length is not None and request.content_length <= USUAL:
                return await request.read()
            async with self._large:
                return await request.read()
