"""Programs that are killed, stopped, starved of CPU time, or have a full disk.

A program that restarts during the fault is a new one without it. Only a starved pod stays starved.
"""

import asyncio
import signal
from contextlib import suppress
from typing import Final

from kuberuntime.objects.meta import JSONObject
from localkube.faults.effects import PodsHere, Undo
from localkube.faults.fault import Fault, FaultError
from localkube.kubelet.processes.runner import StartError

PERIOD: Final = 0.1
"""Seconds within which a starved program runs once: shorter periods cost more than they show."""


async def kill(pods: PodsHere, fault: Fault) -> Undo:
    """Kill the first process of each container, as the kernel does when memory is short."""
    for container in pods.running(await pods.pod(fault.pods[0])):
        await pods.runner.signal(container, signal.SIGKILL)

    async def undo() -> None:
        """Do nothing: the kubelet starts the container again."""

    return undo


async def stop(pods: PodsHere, fault: Fault) -> Undo:
    """Stop all processes of a pod, which keep their connections and answer nothing; resume them at the end."""
    stopped = pods.running(await pods.pod(fault.pods[0]))

    async def undo() -> None:
        await pods.signal(stopped, signal.SIGCONT)

    await pods.signal(stopped, signal.SIGSTOP)
    return undo


async def starve(pods: PodsHere, tasks: asyncio.TaskGroup, fault: Fault) -> Undo:
    """Let the processes of a pod run for a share of every period; the work runs in `tasks`."""
    pod = await pods.pod(fault.pods[0])
    pods.running(pod)
    task = tasks.create_task(_starve(pods, pod, fault.amount))

    async def undo() -> None:
        task.cancel()
        await asyncio.wait([task])

    return undo


async def _starve(pods: PodsHere, pod: JSONObject, share: float) -> None:
    containers: list[str] = []
    try:
        while True:
            with suppress(FaultError):  # its containers are starting again
                containers = pods.running(pod)
            await pods.signal(containers, signal.SIGSTOP)
            await asyncio.sleep(PERIOD * (1 - share))
            await pods.signal(containers, signal.SIGCONT)
            await asyncio.sleep(PERIOD * share)
    finally:
        await pods.signal(containers, signal.SIGCONT)


async def fill(pods: PodsHere, fault: Fault) -> Undo:
    """Resize /tmp or /dev/shm (in memory) of a pod's containers to their content; restore the size at the end."""
    former: dict[str, int] = {}

    async def undo() -> None:
        for container, size in former.items():
            await pods.runner.bound_memory(container, fault.path, size)

    try:
        for container in pods.running(await pods.pod(fault.pods[0])):
            former[container] = await pods.runner.bound_memory(container, fault.path, 0)
    except StartError:
        await undo()
        raise
    return undo
