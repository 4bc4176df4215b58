"""Tests that the fixtures return the kubeconfig of a cluster that runs in a thread."""

import asyncio
from pathlib import Path

import pytest

from kuberuntime.access import kubeconfig
from kuberuntime.client.client import Client
from kuberuntime.client.http import HTTPTransport
from kuberuntime.objects.resources import NAMESPACES, NODES, Resource
from localkube.fixtures import kubernetes, kubernetes_api

__all__ = ["kubernetes", "kubernetes_api"]

pytestmark = pytest.mark.slow


def names(path: Path, resource: Resource) -> list[str]:
    async def read() -> list[str]:
        client = Client(HTTPTransport(kubeconfig.load({}, kubeconfig=str(path)), user_agent="tests"))
        try:
            return [item["metadata"]["name"] for item in (await client.list(resource)).items]
        finally:
            await client.close()

    return asyncio.run(read())


def test_api_server_fixture_answers(kubernetes_api: Path) -> None:
    assert "default" in names(kubernetes_api, NAMESPACES)
    assert names(kubernetes_api, NODES) == []


def test_cluster_fixture_has_a_node(kubernetes: Path) -> None:
    assert names(kubernetes, NODES) == ["node-0"]
