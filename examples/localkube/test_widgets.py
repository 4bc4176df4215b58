"""Tests a custom resource on a real API server, without a cluster: its CRD, its validation, and requests.

pytest examples/localkube
"""

import asyncio

import pytest

from kuberuntime.errors import InvalidError
from kuberuntime.objects import meta, podstate
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, PODS, Resource
from localkube.testing import temporary

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
SIZE = {"type": "integer", "minimum": 1}
SCHEMA = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": SIZE}}}}
DEFINITION: JSONObject = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}],
    },
}


def widget(name: str, size: int) -> JSONObject:
    metadata = {"namespace": "default", "name": name}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": {"size": size}}


def test_the_api_server_keeps_to_the_schema_of_a_definition() -> None:
    async def scenario() -> None:
        async with temporary() as server:
            client = server.client()
            await client.create(CUSTOM_RESOURCE_DEFINITIONS, DEFINITION)
            await client.create(WIDGETS, widget("fits", 3))
            with pytest.raises(InvalidError, match=r"spec\.size: Invalid value: 0"):
                await client.create(WIDGETS, widget("small", 0))
            assert [meta.name(one) for one in (await client.list(WIDGETS)).items] == ["fits"]

    asyncio.run(scenario())


def test_a_pod_is_scheduled_and_becomes_ready() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "default", "name": "web"}}
    container = {"name": "main", "image": "example.com/web:1", "command": ["serve"]}

    async def scenario() -> None:
        async with temporary("modelled pods") as server:
            client = server.client()
            await client.create(PODS, {**pod, "spec": {"containers": [container]}})
            key = ObjectKey("default", "web")
            while podstate.ready_containers(await client.get(PODS, key)) != (1, 1):  # noqa: ASYNC110 - polls, for brevity
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(scenario(), 30))
