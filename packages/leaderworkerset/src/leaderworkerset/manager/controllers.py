"""Runs all controllers in one process, with shared caches, an executor and an event recorder.

Input: kinds and a client. The controllers run until cancelled or stopped. When stopped, they do not start reconciles,
finish those in progress, write their last events and return. With leader election, they run while the lease is held.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import structlog

from kuberuntime import timeouts
from kuberuntime.backoff import Backoff
from kuberuntime.cache import watch
from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.controller.controller import Controller, ControllerOptions
from kuberuntime.controller.eventrecorder import EventRecorder
from kuberuntime.controller.executor import Executor
from kuberuntime.controller.manager import Manager, Runnable
from kuberuntime.controller.workqueue import BACKOFF
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Event
from leaderworkerset.api import groupname
from leaderworkerset.controllers import indexes
from leaderworkerset.controllers.caches import Caches
from leaderworkerset.controllers.instruments import NO_INSTRUMENTS, Instruments
from leaderworkerset.controllers.spec import ControllerSpec, Driver
from leaderworkerset.core import decisionevents
from leaderworkerset.kinds.registry import Registry
from leaderworkerset.manager.components import run_in_background

FINISH_SECONDS: Final = 2.0
"""The timeout in seconds for active reconciliations and for the last events when the process shuts down."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Controllers:
    """Runs controllers once, as a component of a process (`components.py`).

    Events have the kinds' `reporter` as `reportingController`, and `instance` as `reportingInstance`. Failed keys are
    retried after `backoff`.
    """

    def __init__(
        self,
        kinds: Registry,
        client: Client,
        *,
        clock: Clock,
        instance: str,
        instruments: Instruments = NO_INSTRUMENTS,
        backoff: Backoff = BACKOFF,
    ) -> None:
        specs = kinds.controllers
        self.caches = Caches(client, kinds.caches)
        self._recorder = EventRecorder(client, kinds.reporter, instance, clock)
        self._instruments = instruments
        for informer in self.caches.all():
            informer.on_ignored(self._report_ignored)
        executor = Executor(client, _CountingRecorder(self._recorder, instruments), clock)
        self._controllers = tuple(
            _build(
                spec,
                spec.build(self.caches, client, clock),
                executor,
                instruments,
                backoff,
            )
            for spec in specs
        )
        self._beside: list[Runnable] = []
        self._stopping = asyncio.Event()
        self._synced = asyncio.Event()
        self._ended = asyncio.Event()

    def add_component(self, part: Runnable) -> None:
        """Add a component that runs with the controllers, which do not wait for it. Call this before they run."""
        self._beside.append(part)

    @property
    def is_ready(self) -> bool:
        """Return whether all caches have synced."""
        return self._synced.is_set()

    @property
    def are_watches_silent(self) -> bool:
        """Return whether all watches are silent, so that the controllers do not receive changes."""
        return watch.are_silent(informer.watch_state for informer in self.caches.all())

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run while the context is active. The context is entered after all caches have synced."""
        async with run_in_background(self.run()):
            await self._synced.wait()
            yield

    async def drain(self) -> None:
        """Finish the reconciliations in progress. `run` returns afterwards."""
        self.stop()
        await self._ended.wait()

    def stop(self) -> None:
        """Do not start further reconciliations, finish active reconciliations, and make `run` return."""
        self._stopping.set()

    async def run(self) -> None:
        """Run until cancelled or stopped."""
        manager = Manager(informers=self.caches.all(), runnables=(self._recorder, *self._controllers, *self._beside))
        try:
            with self._instruments.export_metrics(self.caches):
                await self._run(manager)
        finally:
            self._ended.set()

    def _report_ignored(self, obj: JSONObject) -> None:
        lws = self.caches[indexes.LEADERWORKERSET_CACHE].store.get(groupname.lws_key(obj))
        self._recorder.record(decisionevents.ignored_event(obj, lws))

    async def _run(self, manager: Manager) -> None:
        async with asyncio.TaskGroup() as group:
            running = group.create_task(manager.run(), name="controllers")
            syncing = group.create_task(self._sync(manager), name="sync")
            await self._stopping.wait()
            syncing.cancel()
            await self._finish()
            running.cancel()

    async def _sync(self, manager: Manager) -> None:
        await manager.wait_synced()
        self._synced.set()

    async def _finish(self) -> None:
        """Wait, up to a timeout, until the controllers are idle and the events are written."""
        try:
            async with timeouts.within(FINISH_SECONDS):
                await asyncio.gather(*(controller.stop() for controller in self._controllers))
        except TimeoutError:
            log.warning("reconciliations were interrupted", after=FINISH_SECONDS)
        try:
            async with timeouts.within(FINISH_SECONDS):
                await self._recorder.flush()
        except TimeoutError:
            log.warning("events were dropped because the API server did not accept them in time", after=FINISH_SECONDS)


def _build(
    spec: ControllerSpec, driver: Driver, executor: Executor, instruments: Instruments, backoff: Backoff
) -> Controller:
    observer = instruments.controller(spec.name)
    options = ControllerOptions(
        observer=observer,
        backoff=backoff,
        on_written=driver.record_writes,
        on_failed=driver.report_failure,
        min_interval=spec.min_interval,
    )
    return Controller(spec.name, watches=driver.watches(), plan=driver.plan, executor=executor, options=options)


class _CountingRecorder:
    """A recorder that counts events before it forwards them."""

    def __init__(self, inner: EventRecorder, instruments: Instruments) -> None:
        self._inner = inner
        self._instruments = instruments

    def record(self, event: Event) -> None:
        """Count and record an event."""
        self._instruments.count_event(event)
        self._inner.record(event)
