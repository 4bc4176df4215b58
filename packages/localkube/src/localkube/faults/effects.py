"""Defines the effects of faults. A function starts an effect, and returns a function that reverts it.

Most effects need the pods of this machine.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from kuberuntime.client.client import Client
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS
from localkube.faults.fault import Fault, FaultError

if TYPE_CHECKING:
    from localkube.kubelet.processes.runner import ProcessRunner

Undo: TypeAlias = Callable[[], Awaitable[None]]

Effect: TypeAlias = Callable[[Fault], Awaitable[Undo]]
"""Starts a fault. Raises `FaultError` or `StartError` if this is impossible."""


class LocalPods(Struct, frozen=True):
    """The pods on this machine, as API objects and as processes of the runner.

    `containers` returns the runner's IDs of the running containers of a pod.
    """

    client: Client
    runner: "ProcessRunner"
    containers: Callable[[JSONObject], list[str]]

    async def pod(self, key: ObjectKey) -> JSONObject:
        """Return a pod with a separate address."""
        pod = await self.client.find(PODS, key)
        if pod is None:
            raise FaultError(f"pod {key} does not exist")
        if not meta.status(pod).get("podIP"):
            raise FaultError(f"pod {key} does not have an IP address, because it has not started or has terminated")
        if meta.spec(pod).get("hostNetwork"):
            raise FaultError(f"pod {key} uses the host network. Choose a different pod")
        return pod

    def running(self, pod: JSONObject) -> list[str]:
        """Return the runner's IDs of the running containers of a pod."""
        if containers := self.containers(pod):
            return containers
        raise FaultError(f"pod {meta.key(pod)} has no running container. Wait until a container is running")

    async def signal(self, containers: list[str], number: int) -> None:
        """Send a signal to all processes of containers. Exited processes are ignored."""
        for container in containers:
            await self.runner.signal(container, number, everything=True)
