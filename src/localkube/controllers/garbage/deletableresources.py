"""Finds the resources that can be deleted, by discovery, for the garbage collector and the namespace controller."""

import asyncio
from collections.abc import Iterator
from typing import Final

import msgspec

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource

NEEDED_VERBS: Final = {"delete", "list", "watch"}


async def discover(client: Client) -> tuple[Resource, ...]:
    """Return every resource that can be listed, watched and deleted, each in the version that its group prefers of it."""
    groups = await _read(client, "/apis")
    paths = ["/api/v1", *(f"/apis/{version}" for version in preferred_versions(groups))]
    async with asyncio.TaskGroup() as tasks:
        answers = [tasks.create_task(_read(client, path)) for path in paths]
    found: dict[str, Resource] = {}
    for answer in answers:
        for resource in parse_resources(answer.result()):
            found.setdefault(resource.group_resource, resource)
    return tuple(found.values())


def preferred_versions(groups: JSONObject) -> list[str]:
    """Return `group/version` for each version of an APIGroupList, the preferred one of a group before its others."""
    return list(
        dict.fromkeys(
            version["groupVersion"]
            for group in groups.get("groups") or []
            for version in (group["preferredVersion"], *group["versions"])
        )
    )


def parse_resources(answer: JSONObject) -> Iterator[Resource]:
    """Read an APIResourceList; subresources, and resources that cannot be listed, watched or deleted, are left out."""
    group, _, version = answer["groupVersion"].rpartition("/")
    for entry in answer.get("resources") or []:
        if "/" not in entry["name"] and set(entry.get("verbs") or ()) >= NEEDED_VERBS:
            yield Resource(group, version, entry["name"], entry["kind"], namespaced=entry["namespaced"])


async def _read(client: Client, path: str) -> JSONObject:
    response = await client.send(Request("GET", path, headers={"accept": "application/json"}))
    return msgspec.json.decode(response.body, type=JSONObject)
