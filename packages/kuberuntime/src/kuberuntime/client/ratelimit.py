"""Limits the request rate of a client with a token bucket (`clientConnection.qps` and `burst`).

The bucket computes the delay from the time, and the transport waits. Waiting namespaces take turns (`fairqueue.py`).
When a token is available, it is used by the earliest request or stream of the next namespace.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from kuberuntime.client import requests
from kuberuntime.client.transport import Request, Response, StreamResponse, Transport
from kuberuntime.clock import Clock
from kuberuntime.fairqueue import FairQueue


class TokenBucket:
    """A token bucket, which adds `rate` tokens per second and stores up to `burst` tokens."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = max(burst, 1)
        self._tokens = float(self._burst)
        self._at: float | None = None

    def reserve(self, now: float) -> float:
        """Reserve a token. Return the seconds until the token is available.

        >>> bucket = TokenBucket(rate=10, burst=2)
        >>> [round(bucket.reserve(0.0), 3) for _ in range(4)]
        [0.0, 0.0, 0.1, 0.2]
        """
        self._fill(now)
        self._tokens -= 1
        return max(0.0, -self._tokens / self._rate)

    def try_take(self, now: float) -> bool:
        """Use a token if one is available. Return whether a token was used.

        >>> bucket = TokenBucket(rate=10, burst=1)
        >>> bucket.try_take(0.0), bucket.try_take(0.0), bucket.try_take(0.1)
        (True, False, True)
        """
        self._fill(now)
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def _fill(self, now: float) -> None:
        elapsed = 0.0 if self._at is None else max(now - self._at, 0.0)
        self._at = now
        self._tokens = min(self._tokens + elapsed * self._rate, self._burst)


class LimitedTransport:
    """A transport that waits for a token before each request. `observe` receives the wait time in seconds."""

    def __init__(
        self, inner: Transport, bucket: TokenBucket, clock: Clock, observe: Callable[[float], None] = lambda _: None
    ) -> None:
        self._observe = observe
        self._inner = inner
        self._bucket = bucket
        self._clock = clock
        self._queue = FairQueue[asyncio.Future[None]]()

    async def request(self, request: Request) -> Response:
        """Wait for a token, then send the request."""
        await self._wait(request)
        return await self._inner.request(request)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        """Wait for a token, then open the stream."""
        await self._wait(request)
        async with self._inner.stream(request) as response:
            yield response

    async def close(self) -> None:
        """Close the connections of the inner transport."""
        await self._inner.close()

    async def _wait(self, request: Request) -> None:
        arrived = self._clock.monotonic()
        delay = self._bucket.reserve(arrived)
        if delay > 0:
            loop = asyncio.get_running_loop()
            waiter = loop.create_future()
            self._queue.put(requests.namespace_of(request), waiter)
            loop.call_later(delay, self._release_waiting)
            await waiter
            delay = self._clock.monotonic() - arrived
        self._observe(delay)

    def _release_waiting(self) -> None:
        """Release the next waiting request. Each waiting request has one reserved token."""
        waiter = self._queue.pop()
        if waiter is not None and not waiter.done():  # finished because its caller was cancelled
            waiter.set_result(None)
