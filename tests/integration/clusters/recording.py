"""A transport that remembers the writes that went through it."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from leaderworkerset.kube.transport import Request, Response, StreamResponse, Transport


@dataclass
class RecordingTransport:
    """Passes everything on; `writes` are the requests that could change something, oldest first."""

    inner: Transport
    writes: list[Request] = field(default_factory=list)

    async def request(self, request: Request) -> Response:
        """Send one request and return its whole answer."""
        if request.method != "GET":
            self.writes.append(request)
        return await self.inner.request(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamResponse]:
        """Send one request and yield its answer as a stream."""
        return self.inner.stream(request)

    async def close(self) -> None:
        """Release connections."""
        await self.inner.close()

    def writes_in(self, namespace: str) -> list[str]:
        """Return method and path of the writes to a namespace, events left out."""
        part = f"/namespaces/{namespace}/"
        return [
            f"{one.method} {one.path}" for one in self.writes if part in one.path and not one.path.endswith("/events")
        ]
