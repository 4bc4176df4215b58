"""Fences the writes of a leader. No write is sent or in progress after the lease might have expired.

Input: the time for which this process may act (`LeaderElection`). Output: a transport, and sockets. A process can be
suspended at any time, for example while it waits for the rate limiter, for a connection, or for a handshake. The time
is therefore checked twice:

```
FencedTransport      behind the rate limiter; the server (`timeout=`) and the client give up when the time is over
FencedSocket         directly before each system call that sends bytes, after all waits
```

The remaining gap is a suspension between the last check and the system call, which takes a few hundred nanoseconds.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol

from kuberuntime import timeouts
from kuberuntime.client.transport import Request, Response, StreamResponse, Transport
from kuberuntime.errors import ConnectionFailedError, KubeError

CLOSED: Final = 1.0
"""The delay of a rejected write in seconds, so that thousands of failing keys do not delay a lease renewal."""

READS: Final = frozenset({"GET", "HEAD"})


class NotLeadingError(KubeError):
    """A write was not sent or was cancelled, because this process is no longer the leader."""


class Fence(Protocol):
    """Limits the time during which this process may act as the leader."""

    def remaining(self) -> float:
        """Return the seconds during which this process may act, or at most 0 if it may not act."""


class FencedSocket(socket.socket):
    """A socket that sends data only while the fence is open. Afterwards, it fails like a broken connection."""

    def __init__(self, fence: Fence, family: int, kind: int, protocol: int) -> None:
        super().__init__(family, kind, protocol)
        self._fence = fence

    def send(self, *arguments: Any) -> int:
        """Send data if the fence is open."""
        self._check()
        return super().send(*arguments)

    def sendmsg(self, *arguments: Any) -> int:
        """Send several buffers if the fence is open."""
        self._check()
        return super().sendmsg(*arguments)

    def _check(self) -> None:
        if self._fence.remaining() <= 0:
            raise ConnectionAbortedError("this process is no longer the leader")


class FencedTransport:
    """A transport that sends writes only while the fence is open, and cancels writes when the fence closes."""

    def __init__(self, inner: Transport, fence: Fence) -> None:
        self._inner = inner
        self._fence = fence

    async def request(self, request: Request) -> Response:
        """Send the request. Writes are sent only while the fence is open, with the remaining time as the timeout."""
        if request.method in READS:
            return await self._inner.request(request)
        seconds = self._fence.remaining()
        if seconds <= 0:
            await asyncio.sleep(CLOSED)
            raise NotLeadingError(f"{request.method} {request.path} was not sent: this process is no longer the leader")
        try:
            async with timeouts.within(seconds):
                return await self._inner.request(with_timeout(request, seconds))
        except (ConnectionFailedError, TimeoutError) as error:
            what = f"{request.method} {request.path}"
            if self._fence.remaining() <= 0:
                raise NotLeadingError(f"{what} was cancelled: this process is no longer the leader") from error
            if isinstance(error, TimeoutError):
                raise ConnectionFailedError(
                    f"{what} did not respond within {seconds:.1f} s, the remaining time of the lease"
                ) from error
            raise

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        """Open a stream. The fence is not checked, because streams are read-only."""
        async with self._inner.stream(request) as response:
            yield response

    async def close(self) -> None:
        """Close the connections of the inner transport."""
        await self._inner.close()


def with_timeout(request: Request, seconds: float) -> Request:
    """Return the request with a server-side timeout.

    >>> with_timeout(Request("DELETE", "/api/v1/pods"), 1.5).query
    (('timeout', '1500ms'),)
    """
    return request.with_query(("timeout", f"{max(int(seconds * 1000), 1)}ms"))
