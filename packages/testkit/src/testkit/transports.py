"""Provides bases for transports of tests, which only define the requests or streams that a test changes."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from kuberuntime.client.transport import Request, Response, StreamResponse, Transport


@dataclass
class ForwardingTransport:
    """Forwards all requests to another transport."""

    inner: Transport

    async def request(self, request: Request) -> Response:
        """Send a request."""
        return await self.inner.request(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamResponse]:
        """Open a stream."""
        return self.inner.stream(request)

    async def close(self) -> None:
        """Close the connections."""
        await self.inner.close()


class RequestTransport:
    """Has no streams and no connections. Subclasses define the responses to requests."""

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamResponse]:
        """Raise an error, because the test does not expect a stream."""
        raise AssertionError(request)

    async def close(self) -> None:
        """Do nothing, because no connection is open."""
