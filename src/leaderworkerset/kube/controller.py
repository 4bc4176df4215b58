"""The controller: a loop (`loop.py`) whose looks are plans, made by a function and performed by the executor."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import structlog

from leaderworkerset.api.meta import ObjectKey
from leaderworkerset.api.plan import Plan
from leaderworkerset.kube.backoff import Backoff
from leaderworkerset.kube.clock import Clock
from leaderworkerset.kube.executor import ExecutionError, Executor, Write
from leaderworkerset.kube.loop import Loop, Watch
from leaderworkerset.kube.observer import SILENCE, Observer
from leaderworkerset.kube.workqueue import BACKOFF

__all__ = ["Controller", "Watch"]

Planner: TypeAlias = Callable[[ObjectKey], Awaitable[Plan]]

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Controller:
    """Keeps what `plan` wants true for every key the watches name."""

    def __init__(  # noqa: PLR0913 - the agreed wiring of a controller, all by name
        self,
        name: str,
        *,
        watches: Sequence[Watch],
        plan: Planner,
        executor: Executor,
        clock: Clock,
        workers: int = 4,
        backoff: Backoff = BACKOFF,
        observer: Observer = SILENCE,
    ) -> None:
        self.name = name
        self._plan = plan
        self._executor = executor
        self._clock = clock
        self._log = log.bind(controller=name)
        self._loop = Loop(
            name, watches=watches, look=self._reconcile, workers=workers, backoff=backoff, observer=observer
        )

    def enqueue(self, key: ObjectKey, *, after: float = 0.0) -> None:
        """Ask for a look at `key`, for reasons no watch can see."""
        self._loop.enqueue(key, after=after)

    async def run(self) -> None:
        """Work until cancelled; begin when all watched informers have synced."""
        await self._loop.run()

    async def stop(self) -> None:
        """Begin with no more keys; return when the reconciliations under way are done. `run` returns then, too."""
        await self._loop.stop()

    async def _reconcile(self, key: ObjectKey, writes: list[Write]) -> float | None:
        started = self._clock.monotonic()
        plan = await self._plan(key)
        try:
            writes += await self._executor.execute(plan)
        except ExecutionError as failure:
            writes += failure.writes
            raise
        report = self._log.info if plan.actions else self._log.debug
        report("reconciled", key=str(key), actions=len(plan.actions), seconds=self._clock.monotonic() - started)
        return plan.requeue_after
