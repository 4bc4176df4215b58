"""The controller: a loop (`loop.py`) whose looks are plans, made by a function and performed by the executor."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import structlog

from kuberuntime.controller.executor import ExecutionError, Executor, Write
from kuberuntime.controller.loop import DEFAULTS, Loop, LoopOptions, Watch
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.plan import Plan

__all__ = ["Controller", "LoopOptions", "Watch"]

Planner: TypeAlias = Callable[[ObjectKey], Awaitable[Plan]]

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Controller:
    """Keeps what `plan` wants true for every key the watches name."""

    def __init__(
        self,
        name: str,
        *,
        watches: Sequence[Watch],
        plan: Planner,
        executor: Executor,
        options: LoopOptions = DEFAULTS,
    ) -> None:
        self.name = name
        self._plan = plan
        self._executor = executor
        self._log = log.bind(controller=name)
        self._loop = Loop(name, watches=watches, look=self._reconcile, options=options)

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
        time = asyncio.get_running_loop().time
        started = time()
        plan = await self._plan(key)
        try:
            writes += await self._executor.execute(plan)
        except ExecutionError as failure:
            writes += failure.writes
            raise
        report = self._log.info if plan.actions else self._log.debug
        report("reconciled", key=str(key), actions=len(plan.actions), seconds=time() - started)
        return plan.requeue_after
