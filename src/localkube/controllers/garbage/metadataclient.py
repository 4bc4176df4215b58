"""A client that reads only the metadata of objects: what the garbage collector keeps of everything."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request, Response, StreamResponse

ONE: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
MANY: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"


def metadata_client(client: Client) -> Client:
    """Return a client over `client` whose answers carry metadata only, where the server can do that."""
    return Client(MetadataTransport(client))


@dataclass(frozen=True, slots=True)
class MetadataTransport:
    """Asks for metadata in every request. Implements `kuberuntime.client.transport.Transport`."""

    client: Client

    async def request(self, request: Request) -> Response:
        """Send one request and return its answer."""
        return await self.client.send(_asking(request))

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        """Send one request and yield its answer as a stream."""
        async with self.client.open(_asking(request)) as response:
            yield response

    async def close(self) -> None:
        """Leave the connections to the client they belong to."""


def _asking(request: Request) -> Request:
    """Return the request with the Accept header that asks for metadata: of a list when reading, else of an object."""
    watching = ("watch", "true") in request.query
    return replace(request, headers={"accept": ONE if watching else f"{MANY},{ONE}"} | dict(request.headers))
