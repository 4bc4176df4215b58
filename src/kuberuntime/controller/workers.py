"""Workers on a queue: every key is worked on by one of them at a time, and comes again after an error, with back-off.

This is the loop edge: whatever goes wrong with one key ends here, in the log, and never stops another.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

import structlog

from kuberuntime.controller.executor import RequeueError
from kuberuntime.controller.observer import Result
from kuberuntime.controller.workqueue import WorkQueue
from kuberuntime.errors import KubeError

K = TypeVar("K", bound=Hashable)

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Workers(Generic[K]):
    """Calls `work` for every key of `queue`; it returns in how many seconds to come again without being asked.

    A key that `is_held` is left alone, neither a success nor a failure; whoever holds it adds it again.
    """

    def __init__(
        self,
        name: str,
        queue: WorkQueue[K],
        work: Callable[[K], Awaitable[float | None]],
        *,
        count: int,
        is_held: Callable[[K], bool] = lambda _: False,
    ) -> None:
        self._name = name
        self._queue = queue
        self._work = work
        self._count = count
        self._is_held = is_held
        self._log = log.bind(controller=name)

    async def run(self) -> None:
        """Work until cancelled, or until the queue is shut down and empty."""
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(self._count):
                    group.create_task(self._serve(), name=f"{self._name}-{number}")
        finally:
            self._queue.shut_down()

    async def _serve(self) -> None:
        while (key := await self._queue.get()) is not None:
            try:
                result = Result.REQUEUE if self._is_held(key) else await self._attend(key)
                self._queue.observer.finished(key, result)
            finally:
                self._queue.done(key)

    async def _attend(self, key: K) -> Result:
        try:
            again = await self._work(key)
        except RequeueError as stale:
            delay = self._queue.add_rate_limited(key)
            self._log.debug("looking again", key=str(key), reason=str(stale), retry_in=delay)
            return Result.REQUEUE
        except KubeError as error:
            delay = self._queue.add_rate_limited(key)
            self._log.warning("reconcile failed", key=str(key), error=str(error), retry_in=delay)
        except Exception:  # noqa: BLE001 - loop edge: an error in one key must not stop the others
            delay = self._queue.add_rate_limited(key)
            self._log.exception("reconcile broke", key=str(key), retry_in=delay)
        else:
            self._queue.forget(key)
            if again is None:
                return Result.SUCCESS
            self._queue.add_after(key, again)
            return Result.REQUEUE_AFTER
        return Result.ERROR
