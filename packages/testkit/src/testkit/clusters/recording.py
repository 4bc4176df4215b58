"""Provides a transport that records writes."""

import asyncio
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from kuberuntime.client.transport import Request, Response, StreamResponse, Transport


@dataclass
class RecordingTransport:
    """Forwards all requests. `writes` contains the requests that could change objects, oldest first."""

    inner: Transport
    writes: list[Request] = field(default_factory=list)
    _limit: int = 0
    _reached: asyncio.Event = field(default_factory=asyncio.Event)

    async def request(self, request: Request) -> Response:
        """Send one request, and return its complete response."""
        if request.method != "GET":
            self.writes.append(request)
            if len(self.writes) == self._limit:
                self._reached.set()
        return await self.inner.request(request)

    def write_number(self, number: int) -> asyncio.Event:
        """Clear the recorded writes, and return an event that is set after `number` writes."""
        self.writes.clear()
        self._limit, self._reached = number, asyncio.Event()
        return self._reached

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamResponse]:
        """Send one request, and yield its response as a stream."""
        return self.inner.stream(request)

    async def close(self) -> None:
        """Close the connections of the inner transport."""
        await self.inner.close()

    def writes_in(self, namespace: str) -> list[str]:
        """Return the method and path of writes to a namespace, except for events."""
        part = f"/namespaces/{namespace}/"
        return [
            f"{write.method} {write.path}"
            for write in self.writes
            if part in write.path and not write.path.endswith("/events")
        ]
