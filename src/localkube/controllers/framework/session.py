"""One look at one key: performs steps, and remembers what was written so that the next look can wait to see it."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from kuberuntime.client.client import Client
from kuberuntime.controller.executor import ExecutionError, Executor, Write, Written
from kuberuntime.errors import KubeError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from kuberuntime.plan import Plan
from localkube.controllers.framework.steps import MergePatch, Step, Steps

T = TypeVar("T")


@dataclass(slots=True)
class Session:
    """Performs steps through one client; `writes` collects what they wrote, also when one failed."""

    client: Client
    executor: Executor
    writes: list[Write]

    async def perform(self, *steps: Step) -> None:
        """Perform steps in order; the first failure ends them and is raised."""
        for step in steps:
            if isinstance(step, MergePatch):
                await self.patch(step)
            else:
                await self._execute(Plan((step,)))

    async def perform_together(self, sequences: Sequence[Steps]) -> None:
        """Perform sequences at the same time, one first, then twice as many each time; stop after a failure.

        So a hopeless batch (quota, a broken template) costs few requests. All failures of a batch are waited for; the
        first is raised.
        """
        for batch in slow_start(sequences):
            failures: list[KubeError] = []
            async with asyncio.TaskGroup() as group:
                for steps in batch:
                    group.create_task(self._attempt(steps, failures))
            if failures:
                raise failures[0]

    async def create(self, resource: Resource, obj: JSONObject) -> JSONObject:
        """Create an object and return it as the server made it."""
        return self._written(resource, await self.client.create(resource, obj))

    async def patch(self, step: MergePatch) -> JSONObject:
        """Patch an object and return it as it is now."""
        answer = await self.client.patch(
            step.resource, step.key, step.patch, kind="merge", subresource=step.subresource
        )
        return self._written(step.resource, answer)

    async def _attempt(self, steps: Steps, failures: list[KubeError]) -> None:
        try:
            await self.perform(*steps)
        except KubeError as error:
            failures.append(error)

    async def _execute(self, plan: Plan) -> None:
        try:
            self.writes += await self.executor.execute(plan)
        except ExecutionError as failure:
            self.writes += failure.writes
            raise

    def _written(self, resource: Resource, answer: JSONObject) -> JSONObject:
        self.writes.append(Written(resource, meta.key(answer), meta.resource_version(answer)))
        return answer


def slow_start(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Cut items into batches that double in size.

    >>> [len(batch) for batch in slow_start(range(10))]
    [1, 2, 4, 3]
    """
    begin, size = 0, 1
    while begin < len(items):
        yield items[begin : begin + size]
        begin, size = begin + size, size * 2
