"""Tests the driver of the scheduler.

If a decision fails, its pod reports it, and the driver continues with other pods.
"""

import asyncio
from typing import Any

import pytest
from testkit import objects
from testkit.fakes import SmallServer, respond
from testkit.virtualtime import VirtualClock

from kuberuntime.cache.informer import Informer
from kuberuntime.client.client import Client
from kuberuntime.controller.executor import Executor, NoEvents
from kuberuntime.objects.resources import NAMESPACES, NODES, PERSISTENT_VOLUME_CLAIMS, PODS
from localkube.controllers.scheduler.controller import Scheduler, SchedulerInformers

pytestmark = pytest.mark.virtual_time

UNREADABLE: Any = {"status": "Bound"}
"""A claim that an API server never returns, because its status is not an object."""


async def test_failed_decision_is_reported_and_others_continue() -> None:
    servers = {resource: SmallServer() for resource in (PODS, NODES, PERSISTENT_VOLUME_CLAIMS, NAMESPACES)}
    informers = {resource: Informer(Client(server), resource) for resource, server in servers.items()}
    servers[NAMESPACES].put("default")
    servers[NODES].put("node-0", status={"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "10"}})
    servers[PERSISTENT_VOLUME_CLAIMS].put("data", **UNREADABLE)
    servers[PODS].refuse = lambda request: None if request.method == "GET" else respond(201, {})
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    servers[PODS].put("bad", **objects.pod("bad", node="", spec={"volumes": volumes}))
    servers[PODS].put("good", **objects.pod("good", node=""))
    executor = Executor(Client(servers[PODS]), NoEvents(), VirtualClock())
    sources = SchedulerInformers(
        pods=informers[PODS],
        nodes=informers[NODES],
        claims=informers[PERSISTENT_VOLUME_CLAIMS],
        namespaces=informers[NAMESPACES],
    )
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(one.run()) for one in informers.values()]
        scheduler = tasks.create_task(Scheduler(executor, sources, NoEvents(), VirtualClock()).run())
        await asyncio.sleep(5)
        assert not scheduler.done()
        writes = [(one.path, one.body) for one in servers[PODS].requests if one.method != "GET"]
        for task in (scheduler, *running):
            task.cancel()
    assert [path.rpartition("pods/")[2] for path, _ in writes] == ["bad/status", "good/binding"]
    assert b"internal error, retrying after the next change: AttributeError" in writes[0][1]
