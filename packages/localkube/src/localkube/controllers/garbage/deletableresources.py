"""Determines the deletable resources by discovery, for the garbage collector and the namespace controller."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

import msgspec

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request, Response, StreamResponse
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource

ONE: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
MANY: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"


def metadata_client(client: Client) -> Client:
    """Return a client that wraps `client` and requests only metadata, if the server supports it."""
    return Client(MetadataTransport(client))


class MetadataTransport(msgspec.Struct, frozen=True):
    """Requests only metadata. Implements `kuberuntime.client.transport.Transport`."""

    client: Client

    async def request(self, request: Request) -> Response:
        """Send one request and return its response."""
        return await self.client.send(_with_accept_header(request))

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        """Send one request and yield its response as a stream."""
        async with self.client.open(_with_accept_header(request)) as response:
            yield response

    async def close(self) -> None:
        """Do nothing, because the wrapped client owns the connections."""


def _with_accept_header(request: Request) -> Request:
    """Return the request with the Accept header for metadata of a list or of an object."""
    watching = ("watch", "true") in request.query
    return replace(request, headers={"accept": ONE if watching else f"{MANY},{ONE}"} | dict(request.headers))


NEEDED_VERBS: Final = {"delete", "list", "watch"}


async def discover(client: Client) -> tuple[Resource, ...]:
    """Return every resource that can be listed, watched and deleted, in the preferred version of its group."""
    groups = await _read(client, "/apis")
    paths = ["/api/v1", *(f"/apis/{version}" for version in preferred_versions(groups))]
    async with asyncio.TaskGroup() as tasks:
        responses = [tasks.create_task(_read(client, path)) for path in paths]
    resources: dict[str, Resource] = {}
    for response in responses:
        for resource in parse_resources(response.result()):
            resources.setdefault(resource.group_resource, resource)
    return tuple(resources.values())


def preferred_versions(groups: JSONObject) -> list[str]:
    """Return `group/version` for each version of an APIGroupList, the preferred version of a group first."""
    return list(
        dict.fromkeys(
            version["groupVersion"]
            for group in groups.get("groups") or []
            for version in (group["preferredVersion"], *group["versions"])
        )
    )


def parse_resources(response: JSONObject) -> Iterator[Resource]:
    """Yield the resources in an APIResourceList that can be listed, watched and deleted, without subresources."""
    group, _, version = response["groupVersion"].rpartition("/")
    for entry in response.get("resources") or []:
        if "/" not in entry["name"] and set(entry.get("verbs") or ()) >= NEEDED_VERBS:
            yield Resource(group, version, entry["name"], entry["kind"], namespaced=entry["namespaced"])


async def _read(client: Client, path: str) -> JSONObject:
    response = await client.send(Request("GET", path, headers={"accept": "application/json"}))
    return msgspec.json.decode(response.body, type=JSONObject)
