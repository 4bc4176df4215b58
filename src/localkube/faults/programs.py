"""Programs that die, stand still, or get little of a processor.

A program that starts again meanwhile is a new one, and whole: a machine that restarts it has repaired it. Only a starved
pod stays starved.
"""

import asyncio
import signal
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from kuberuntime.objects.meta import JSONObject
from localkube.faults.effects import Pods, Undo, nothing
from localkube.faults.fault import Fault, FaultError
from localkube.kubelet.processes.runner import ProcessRunner

PERIOD: Final = 0.1
"""Seconds within which a starved program runs once: shorter ones cost more than they show."""


class Killing:
    """Kills the first process of each container, as the kernel does when memory is short."""

    def __init__(self, runner: ProcessRunner, pods: Pods) -> None:
        self._runner = runner
        self._pods = pods

    async def begin(self, fault: Fault) -> Undo:
        """Kill; there is nothing to undo, as the kubelet starts the container again."""
        for container in self._pods.running(await self._pods.pod(fault.pods[0])):
            await self._runner.signal(container, signal.SIGKILL)
        return nothing


class Stopping:
    """Stops all processes of a pod, which keep their connections and answer nothing."""

    def __init__(self, runner: ProcessRunner, pods: Pods) -> None:
        self._runner = runner
        self._pods = pods

    async def begin(self, fault: Fault) -> Undo:
        """Stop; continue in the end."""
        stopped = self._pods.running(await self._pods.pod(fault.pods[0]))

        async def undo() -> None:
            await signal_all(self._runner, stopped, signal.SIGCONT)

        await signal_all(self._runner, stopped, signal.SIGSTOP)
        return undo


class Starving:
    """Lets the processes of a pod run for a share of every period only, whatever the machine has left."""

    def __init__(self, runner: ProcessRunner, pods: Pods, tasks: asyncio.TaskGroup) -> None:
        self._runner = runner
        self._pods = pods
        self._tasks = tasks

    async def begin(self, fault: Fault) -> Undo:
        """Starve; continue in the end."""
        pod = await self._pods.pod(fault.pods[0])
        self._pods.running(pod)
        task = self._tasks.create_task(self._starve(pod, fault.amount))

        async def undo() -> None:
            task.cancel()
            await asyncio.wait([task])

        return undo

    async def _starve(self, pod: JSONObject, share: float) -> None:
        containers: list[str] = []
        try:
            while True:
                with suppress(FaultError):  # its containers are starting again
                    containers = self._pods.running(pod)
                await signal_all(self._runner, containers, signal.SIGSTOP)
                await asyncio.sleep(PERIOD * (1 - share))
                await signal_all(self._runner, containers, signal.SIGCONT)
                await asyncio.sleep(PERIOD * share)
        finally:
            await signal_all(self._runner, containers, signal.SIGCONT)


async def signal_all(runner: ProcessRunner, containers: Iterable[str], number: int) -> None:
    """Signal every process of containers; those that have ended are no error."""
    for container in containers:
        await runner.signal(container, number, everything=True)
