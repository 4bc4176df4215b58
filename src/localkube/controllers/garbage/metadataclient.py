"""A client that reads only the metadata of objects, for the garbage collector."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request, Response, StreamResponse

ONE: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
MANY: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"


def metadata_client(client: Client) -> Client:
    """Return a client over `client` that gets metadata only, if the server supports it."""
    return Client(MetadataTransport(client))


@dataclass(frozen=True, slots=True)
class MetadataTransport:
    """Requests metadata only. Implements `kuberuntime.client.transport.Transport`."""

    client: Client

    async def request(self, request: Request) -> Response:
        """Send one request and return its response."""
        return await self.client.send(_asking(request))

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        """Send one request and yield its response as a stream."""
        async with self.client.open(_asking(request)) as response:
            yield response

    async def close(self) -> None:
        """Do nothing: the connections belong to the wrapped client."""


def _asking(request: Request) -> Request:
    """Return the request with the Accept header for metadata: of a list when reading, else of an object."""
    watching = ("watch", "true") in request.query
    return replace(request, headers={"accept": ONE if watching else f"{MANY},{ONE}"} | dict(request.headers))
