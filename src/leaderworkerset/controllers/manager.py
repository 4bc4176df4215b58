"""The controllers of one process, together: informers, executor, events, and a controller per kind.

In: a client. Out: nothing; they run until cancelled. Whoever elects a leader runs the whole under the lease.
"""

import asyncio

from leaderworkerset.api import labels
from leaderworkerset.controllers import leaderworkerset, pod
from leaderworkerset.controllers.selection import build_informers
from leaderworkerset.kube.client import Client
from leaderworkerset.kube.clock import Clock
from leaderworkerset.kube.events import EventRecorder
from leaderworkerset.kube.executor import Executor
from leaderworkerset.kube.manager import Manager


async def run_controllers(client: Client, *, clock: Clock, instance: str, synced: asyncio.Event | None = None) -> None:
    """Run the controllers until cancelled; `synced` is set when their caches are filled.

    `instance` names this process in events (`reportingInstance`).
    """
    informers = build_informers(client)
    recorder = EventRecorder(client, labels.EVENT_REPORTER, instance, clock)
    executor = Executor(client, recorder, clock)
    manager = Manager(
        informers=informers.all(),
        runnables=(
            recorder,
            leaderworkerset.build_controller(informers, executor, clock),
            pod.build_controller(informers, client, executor, clock),
        ),
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(manager.run(), name="controllers")
        await manager.wait_synced()
        if synced is not None:
            synced.set()
