"""Client-side rate limit: a token bucket in front of a transport (`clientConnection.qps` and `burst`).

The bucket computes the wait from a given time; the transport waits. Requests and streams are sent in the order of their
arrival, since a later one always gets a later token.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from kuberuntime.client.transport import Request, Response, StreamResponse, Transport
from kuberuntime.clock import Clock


class TokenBucket:
    """Provides `rate` tokens a second, and stores up to `burst` of them."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = max(burst, 1)
        self._tokens = float(self._burst)
        self._at: float | None = None

    def take(self, now: float) -> float:
        """Reserve a token, which may be a future one; return the seconds until it is available.

        >>> bucket = TokenBucket(rate=10, burst=2)
        >>> [round(bucket.take(0.0), 3) for _ in range(4)]
        [0.0, 0.0, 0.1, 0.2]
        """
        self._fill(now)
        self._tokens -= 1
        return max(0.0, -self._tokens / self._rate)

    def take_now(self, now: float) -> bool:
        """Take a token if one is available; return whether it was.

        >>> bucket = TokenBucket(rate=10, burst=1)
        >>> bucket.take_now(0.0), bucket.take_now(0.0), bucket.take_now(0.1)
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
    """A transport that waits for a token before each request; `observe` is told how many seconds."""

    def __init__(
        self, inner: Transport, bucket: TokenBucket, clock: Clock, observe: Callable[[float], None] = lambda _: None
    ) -> None:
        self._observe = observe
        self._inner = inner
        self._bucket = bucket
        self._clock = clock

    async def request(self, request: Request) -> Response:
        """Wait, then send."""
        await self._wait()
        return await self._inner.request(request)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        """Wait, then open the stream."""
        await self._wait()
        async with self._inner.stream(request) as response:
            yield response

    async def close(self) -> None:
        """Release connections."""
        await self._inner.close()

    async def _wait(self) -> None:
        delay = self._bucket.take(self._clock.monotonic())
        self._observe(delay)
        if delay > 0:
            await asyncio.sleep(delay)
