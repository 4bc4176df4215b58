"""Converts changes to keys, keys to plans, and plans to writes. Plans depend on current caches only.

Changes in the watched informers are converted to keys (`Watch.keys`). Several workers process keys from a queue, but
never the same key (`workqueue.py`). For each key, `plan` observes the objects and returns a plan, which the executor
performs (`executor.py`). The key is reconciled again only after the caches contain the writes of its last plan
(`expectations.py`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TypeAlias

import structlog
from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.backoff import Backoff
from kuberuntime.cache.informer import Change, Informer
from kuberuntime.controller.executionerrors import ExecutionError, PostponedError
from kuberuntime.controller.executor import Executor
from kuberuntime.controller.expectations import Expectations
from kuberuntime.controller.workqueue import BACKOFF, SILENCE, Observer, WorkQueue, run_workers
from kuberuntime.controller.writes import Write, summary
from kuberuntime.errors import ConnectionFailedError
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.plan import Actions, Plan

Planner: TypeAlias = Callable[[ObjectKey], Awaitable[Plan]]
"""Observes the objects of a key, and returns a plan for the key."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def ignore_writes(_key: ObjectKey, _writes: Sequence[Write]) -> None:
    """Ignore the writes of the plan."""


def ignore_failure(_key: ObjectKey) -> Actions:
    """Return no actions for a failed reconciliation."""
    return ()


class Watch(Struct, frozen=True):
    """An informer, and a function that returns the keys to reconcile when its objects change."""

    informer: Informer
    keys: Callable[[Change], Iterable[ObjectKey]]


class ControllerOptions(Struct, frozen=True, kw_only=True):
    """The number of workers, the back-off for failures, and the callbacks.

    One namespace uses at most all workers except one, so that other namespaces do not wait. If `is_quiet` is set, an
    executed plan is logged at level debug instead of info. `on_written` is called with the writes of each plan, even if
    the plan fails later. If an error prevents a plan, the actions that `on_failed` returns are performed. After a plan
    without actions, changes within `min_interval` seconds cause only one reconciliation of the key.
    """

    workers: int = 5
    backoff: Backoff = BACKOFF
    observer: Observer = SILENCE
    is_quiet: bool = False
    on_written: Callable[[ObjectKey, Sequence[Write]], None] = ignore_writes
    on_failed: Callable[[ObjectKey], Actions] = ignore_failure
    min_interval: float = 0.0


DEFAULTS: Final = ControllerOptions()


class Controller:
    """Reconciles keys from its watches by executing the `plan` of each key."""

    def __init__(
        self,
        name: str,
        *,
        watches: Sequence[Watch],
        plan: Planner,
        executor: Executor,
        options: ControllerOptions = DEFAULTS,
    ) -> None:
        self.name = name
        self._watches = watches
        self._plan = plan
        self._executor = executor
        self._options = options
        self._log = log.bind(controller=name)
        self._queue = WorkQueue[ObjectKey](
            options.backoff,
            options.observer,
            tenant=lambda key: key.namespace,
            share=max(options.workers - 1, 1),
        )
        self._waiting: set[ObjectKey] = set()
        self._expectations = Expectations({watch.informer for watch in watches}, self._handle_release)

    def enqueue(self, key: ObjectKey, *, after: float = 0.0) -> None:
        """Enqueue `key` after a delay in seconds, for a reason that is independent of watches."""
        self._queue.add_after(key, after)

    async def run(self) -> None:
        """Reconcile until cancelled or stopped. Reconciliation starts when all watched informers have synced."""
        for watch in self._watches:
            watch.informer.subscribe(partial(self._handle_change, watch))
        for watch in self._watches:
            await watch.informer.wait_synced()
        try:
            await run_workers(
                self._queue, self._process, name=self.name, workers=self._options.workers, is_held=self._is_held
            )
        finally:
            self._expectations.close()

    async def stop(self) -> None:
        """Stop processing new keys. `run` returns when the current plans have been executed."""
        self._queue.discard()
        await self._queue.wait_idle()

    def _handle_change(self, watch: Watch, change: Change) -> None:
        for key in watch.keys(change):
            self._queue.add(key)

    def _handle_release(self, key: ObjectKey) -> None:
        if key in self._waiting:
            self._waiting.discard(key)
            self._queue.add(key)

    def _is_held(self, key: ObjectKey) -> bool:
        """Return whether the last writes of the key are missing in the caches. If so, enqueue the key later."""
        if not self._expectations.is_waiting(key):
            return False
        self._waiting.add(key)
        return True

    async def _process(self, key: ObjectKey) -> float | None:
        time = asyncio.get_running_loop().time
        started = time()
        writes: Sequence[Write] = ()
        try:
            plan = await self._plan_or_report(key)
            writes = await self._executor.execute(plan)
        except PostponedError as postponed:
            writes = postponed.writes
            # the plan may request an immediate requeue because of the delayed write
            plan = replace(plan, requeue_after=plan.requeue_after or None).with_requeue_limit(postponed.seconds)
        except ExecutionError as failure:
            writes = failure.writes
            raise
        finally:
            self._expectations.expect(key, writes)
            self._options.on_written(key, writes)
        if self._options.min_interval and not plan.actions:
            self._queue.delay_additions(key, self._options.min_interval)
        report = self._log.info if plan.actions and not self._options.is_quiet else self._log.debug
        report(
            "reconciled",
            key=str(key),
            actions=len(plan.actions),
            writes=summary(writes),
            seconds=round(time() - started, 4),
        )
        return plan.requeue_after

    async def _plan_or_report(self, key: ObjectKey) -> Plan:
        """Return the plan. For an error other than an outage, return the actions that report the error."""
        try:
            return await self._plan(key)
        except ConnectionFailedError:
            raise
        except Exception:
            with suppress(ExecutionError):
                self._expectations.expect(key, await self._executor.execute(Plan(self._options.on_failed(key))))
            raise
