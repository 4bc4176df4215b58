"""Composes the faults of a cluster from what it consists of."""

import asyncio
from collections.abc import Mapping
from typing import Protocol

from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.errors import NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS
from localkube.faults.disks import Filling
from localkube.faults.effects import Effect
from localkube.faults.fault import FaultError, FaultKind
from localkube.faults.keeper import FaultKeeper
from localkube.faults.leavingnodes import Leaving
from localkube.faults.packets import Delaying, Losing
from localkube.faults.parts import Part, Removing
from localkube.faults.programs import Killing, Starving, Stopping
from localkube.kubelet.processes.runner import ProcessRunner


class RunsPods(Protocol):
    """The kubelet."""

    def running(self, pod: JSONObject) -> list[str]:
        """Return the names by which the runner knows the running containers of a pod."""
        ...


class PodsHere:
    """The pods of this machine, by the API and the kubelet."""

    def __init__(self, client: Client, kubelet: RunsPods) -> None:
        self._client = client
        self._kubelet = kubelet

    async def pod(self, key: ObjectKey) -> JSONObject:
        """Return a pod that has an address of its own."""
        try:
            pod = await self._client.get(PODS, key)
        except NotFoundError as error:
            raise FaultError(f"pod {key} is not there") from error
        if not meta.status(pod).get("podIP"):
            raise FaultError(f"pod {key} has no address: it has not started, or has ended")
        if meta.spec(pod).get("hostNetwork"):
            raise FaultError(f"pod {key} shares the network of its node (hostNetwork): choose another one")
        return pod

    def running(self, pod: JSONObject) -> list[str]:
        """Return the names of its running containers."""
        if found := self._kubelet.running(pod):
            return found
        raise FaultError(f"pod {meta.key(pod)} has no running container: wait until it has started again")


def keeper(
    client: Client,
    clock: Clock,
    runner: ProcessRunner,
    kubelet: RunsPods,
    parts: Mapping[FaultKind, Part],
    tasks: asyncio.TaskGroup,
) -> FaultKeeper:
    """Return the keeper of a cluster's faults; `tasks` runs what lasts as long as a fault."""
    pods = PodsHere(client, kubelet)
    losing, leaving, removing = Losing(runner, pods), Leaving(client), Removing(parts)
    effects: dict[FaultKind, Effect] = {
        FaultKind.KILL: Killing(runner, pods),
        FaultKind.STOP: Stopping(runner, pods),
        FaultKind.STARVE: Starving(runner, pods, tasks),
        FaultKind.PARTITION: losing,
        FaultKind.LOSE: losing,
        FaultKind.THROTTLE: losing,
        FaultKind.DELAY: Delaying(runner, pods),
        FaultKind.FILL: Filling(runner, pods),
        FaultKind.DRAIN: leaving,
        FaultKind.LOSE_NODE: leaving,
        FaultKind.APISERVER: removing,
        FaultKind.WEBHOOKS: removing,
        FaultKind.MANAGER: removing,
    }
    return FaultKeeper(effects, clock)
