"""Runs an informer against a fake API server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from testkit.fakes import SmallServer

from kuberuntime.cache.informer import Informer
from kuberuntime.client.client import Client
from kuberuntime.client.requests import Selection
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS


def pod(name: str = "a", version: int = 1, *, uid: str = "", group: str = "0") -> JSONObject:
    metadata = {"name": name, "namespace": "default", "uid": uid or name, "resourceVersion": str(version)}
    return {"metadata": metadata | {"labels": {"group": group}}}


@asynccontextmanager
async def running(server: SmallServer) -> AsyncIterator[Informer]:
    informer = Informer(Client(server), Selection(PODS, label_selector="app=x"))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(informer.run())
        await informer.wait_synced()
        yield informer
        task.cancel()


async def settle() -> None:
    """Run all operations that complete within one second of virtual time."""
    await asyncio.sleep(1)


def names(informer: Informer) -> set[str]:
    return {meta.name(obj) for obj in informer.store.list()}
