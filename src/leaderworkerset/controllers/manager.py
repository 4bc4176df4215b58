"""The controllers of one process, together: informers, executor, events, and a controller per kind.

In: a client. Out: nothing; they run until cancelled, or until they are asked to stop: then they begin with nothing new,
finish what they are at, write their last events and return. Whoever elects a leader runs the whole under the lease.
"""

import asyncio
from typing import Final

import structlog

from kuberuntime import timeouts
from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.controller.controller import Controller
from kuberuntime.controller.events import EventRecorder
from kuberuntime.controller.executor import Executor
from kuberuntime.controller.manager import Manager
from kuberuntime.plan import Event
from leaderworkerset.api import labels
from leaderworkerset.controllers import leaderworkerset, pod
from leaderworkerset.controllers.instruments import NO_INSTRUMENTS, Instruments
from leaderworkerset.controllers.selection import build_informers

FINISH_SECONDS: Final = 2.0
"""How long reconciliations under way may take to end, and after them events to be written, when asked to stop."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


async def run_controllers(
    client: Client,
    *,
    clock: Clock,
    instance: str,
    synced: asyncio.Event | None = None,
    stopping: asyncio.Event | None = None,
    instruments: Instruments = NO_INSTRUMENTS,
) -> None:
    """Run the controllers until cancelled, or until `stopping` is set; set `synced` when their caches are filled.

    `instance` names this process in events (`reportingInstance`).
    """
    stop = stopping or asyncio.Event()
    informers = build_informers(client)
    recorder = EventRecorder(client, labels.EVENT_REPORTER, instance, clock)
    executor = Executor(client, _Counted(recorder, instruments), clock)
    lws = leaderworkerset.build_controller(informers, executor, clock, instruments.controller(leaderworkerset.NAME))
    pods = pod.build_controller(informers, client, executor, clock, instruments.controller(pod.NAME))
    manager = Manager(informers=informers.all(), runnables=(recorder, lws, pods))
    with instruments.following(informers):
        async with asyncio.TaskGroup() as group:
            running = group.create_task(manager.run(), name="controllers")
            syncing = group.create_task(_tell(manager, synced), name="sync")
            await stop.wait()
            syncing.cancel()
            await _finish((lws, pods), recorder)
            running.cancel()


async def _tell(manager: Manager, synced: asyncio.Event | None) -> None:
    """Return when the caches are filled."""
    await manager.wait_synced()
    if synced is not None:
        synced.set()


async def _finish(controllers: tuple[Controller, ...], recorder: EventRecorder) -> None:
    """Let the controllers come to rest and the events be written, within bounds."""
    try:
        async with timeouts.within(FINISH_SECONDS):
            await asyncio.gather(*(controller.stop() for controller in controllers))
    except TimeoutError:
        log.warning("reconciliations were cut off", after=FINISH_SECONDS)
    try:
        async with timeouts.within(FINISH_SECONDS):
            await recorder.flush()
    except TimeoutError:
        log.warning("events were lost: the API server did not take them in time", after=FINISH_SECONDS)


class _Counted:
    """A recorder whose events are counted on their way."""

    def __init__(self, inner: EventRecorder, instruments: Instruments) -> None:
        self._inner = inner
        self._instruments = instruments

    def record(self, event: Event) -> None:
        """Count and record."""
        self._instruments.recorded(event)
        self._inner.record(event)
