"""Disks that are full: a container's file system in memory is made as small as what it holds."""

from localkube.faults.effects import Pods, Undo
from localkube.faults.fault import Fault
from localkube.kubelet.processes.runner import ProcessRunner, StartError


class Filling:
    """Fills /tmp or /dev/shm of a pod's containers."""

    def __init__(self, runner: ProcessRunner, pods: Pods) -> None:
        self._runner = runner
        self._pods = pods

    async def begin(self, fault: Fault) -> Undo:
        """Fill; give the former size back in the end."""
        former: dict[str, int] = {}

        async def undo() -> None:
            for container, size in former.items():
                await self._runner.bound_memory(container, fault.path, size)

        try:
            for container in self._pods.running(await self._pods.pod(fault.pods[0])):
                former[container] = await self._runner.bound_memory(container, fault.path, 0)
        except StartError:
            await undo()
            raise
        return undo
