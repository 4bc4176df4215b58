"""Implements faults of containers, which are killed, paused, throttled, or have a full disk.

A fault does not apply to a container that restarts. Only throttling continues to apply to the pod.
"""

import asyncio
import signal
from contextlib import suppress
from typing import Final

from kuberuntime.objects.meta import JSONObject
from localkube.faults.effects import LocalPods, Undo
from localkube.faults.fault import Fault, FaultError
from localkube.kubelet.processes.runner import StartError

PERIOD: Final = 0.1
"""The period in seconds in which a throttled process runs once. Shorter periods need more CPU time."""


async def kill_containers(pods: LocalPods, fault: Fault) -> Undo:
    """Kill the first process of each container, as the kernel does when it is out of memory."""
    for container in pods.running(await pods.pod(fault.pods[0])):
        await pods.runner.signal(container, signal.SIGKILL)

    async def undo() -> None:
        """Do nothing, because the kubelet restarts the container."""

    return undo


async def pause_pod(pods: LocalPods, fault: Fault) -> Undo:
    """Pause all processes of a pod, which retain their connections but do not respond. Resume them afterwards."""
    stopped = pods.running(await pods.pod(fault.pods[0]))

    async def undo() -> None:
        await pods.signal(stopped, signal.SIGCONT)

    await pods.signal(stopped, signal.SIGSTOP)
    return undo


async def throttle_cpu(pods: LocalPods, tasks: asyncio.TaskGroup, fault: Fault) -> Undo:
    """Run the processes of a pod only for a fraction of each period. The throttling runs in `tasks`."""
    pod = await pods.pod(fault.pods[0])
    pods.running(pod)
    task = tasks.create_task(_throttle_pod(pods, pod, fault.amount))

    async def undo() -> None:
        task.cancel()
        await asyncio.wait([task])

    return undo


async def _throttle_pod(pods: LocalPods, pod: JSONObject, share: float) -> None:
    containers: list[str] = []
    try:
        while True:
            with suppress(FaultError):  # its containers are restarting
                containers = pods.running(pod)
            await pods.signal(containers, signal.SIGSTOP)
            await asyncio.sleep(PERIOD * (1 - share))
            await pods.signal(containers, signal.SIGCONT)
            await asyncio.sleep(PERIOD * share)
    finally:
        await pods.signal(containers, signal.SIGCONT)


async def fill_disk(pods: LocalPods, fault: Fault) -> Undo:
    """Shrink /tmp or /dev/shm (in memory) of a pod's containers to their content. Restore the size afterwards."""
    former: dict[str, int] = {}

    async def undo() -> None:
        for container, size in former.items():
            await pods.runner.resize_memory(container, fault.path, size)

    try:
        for container in pods.running(await pods.pod(fault.pods[0])):
            former[container] = await pods.runner.resize_memory(container, fault.path, 0)
    except StartError:
        await undo()
        raise
    return undo
