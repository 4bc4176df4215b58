"""Manages the faults of a cluster. Starts requested faults, and reverts each fault at its deadline.

The cluster enforces the deadline, so that faults of a killed command also end in time. When the cluster stops, all
faults are reverted. If the cluster was killed, changes of objects are reverted when it starts again
(`nodefaults.restore_nodes`).

`answer` serves `FAULTS_PATH` (`apiserver/server.py`), which is not part of the Kubernetes API: GET lists faults, POST
starts a fault, and DELETE reverts all faults, or the fault whose number follows in the path. Every client with the
token of the cluster can use it.
"""

import asyncio
import itertools
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Final

import structlog
from msgspec import Struct

from kuberuntime import timeouts
from kuberuntime.client.transport import Request, Response
from kuberuntime.clock import Clock
from kuberuntime.errors import KubeError
from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.model import apierrors
from localkube.apiserver.requests import representation
from localkube.faults import containerfaults, nodefaults
from localkube.faults.componentfaults import Component, ComponentFaults
from localkube.faults.effects import Effect, LocalPods, Undo
from localkube.faults.fault import Fault, FaultError, FaultKind, parse
from localkube.faults.networkfaults import NetworkFaults
from localkube.kubelet.processes.runner import StartError

MOST: Final = 64
"""The maximum number of concurrent faults."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class ActiveFault(Struct, frozen=True):
    """An active fault. `until` is monotonic time."""

    fault: Fault
    until: float
    undo: Undo


class FaultManager:
    """The faults of one cluster."""

    def __init__(self, effects: Mapping[FaultKind, Effect], clock: Clock) -> None:
        self._effects = effects
        self._clock = clock
        self._active: dict[int, ActiveFault] = {}
        self._numbers = itertools.count(1)
        self._changed = asyncio.Event()
        self._changing = asyncio.Lock()

    async def run(self) -> None:
        """Revert each fault at its deadline, and all faults when cancelled."""
        try:
            while True:
                self._changed.clear()
                now = self._clock.monotonic()
                for number in [number for number, active in self._active.items() if active.until <= now]:
                    await self.undo(number)
                await self._wait_for_deadline()
        finally:
            await self.undo_all()

    async def begin(self, fault: Fault) -> int:
        """Start a fault, and return its number. Raise `FaultError` or `StartError` if this is impossible."""
        async with self._changing:
            if len(self._active) >= MOST:
                raise FaultError(f"{MOST} faults are already active. Undo a fault first")
            undo = await self._effects[fault.kind](fault)
            number = next(self._numbers)
            self._active[number] = ActiveFault(fault, self._clock.monotonic() + fault.seconds, undo)
        self._changed.set()
        return number

    async def undo(self, number: int) -> None:
        """Revert a fault if it is still active."""
        async with self._changing:
            active = self._active.pop(number, None)
            if active is None:
                return
            try:
                await active.undo()
            except StartError as error:  # its container or sandbox has terminated, which also removes the fault
                log.info(
                    "fault removed, because its target no longer exists",
                    fault=str(active.fault.kind),
                    reason=str(error),
                )
            except KubeError:
                log.exception("failed to undo a fault", fault=str(active.fault.kind))

    async def undo_all(self) -> None:
        """Revert all faults, starting with the latest."""
        for number in sorted(self._active, reverse=True):
            await self.undo(number)

    async def serve(self, request: Request, path: str) -> Response:
        """Serve a fault request. `path` is the rest of its path."""
        try:
            match request.method, path:
                case "GET", "":
                    return representation.respond(200, self._document())
                case "POST", "":
                    number = await self.begin(parse(request.body))
                    return representation.respond(201, {"kind": "Fault", "number": number})
                case "DELETE", "":
                    await self.undo_all()
                    return representation.respond(200, self._document())
                case "DELETE", _ if path[1:].isdecimal():
                    await self.undo(int(path[1:]))
                    return representation.respond(200, self._document())
                case _:
                    raise apierrors.method_not_allowed()
        except (FaultError, StartError, KubeError) as error:
            return representation.respond_rejection(apierrors.bad_request(str(error)))

    async def _wait_for_deadline(self) -> None:
        until = min((active.until for active in self._active.values()), default=None)
        with suppress(TimeoutError):
            async with timeouts.within(None if until is None else max(0.0, until - self._clock.monotonic())):
                await self._changed.wait()

    def _document(self) -> JSONObject:
        now = self._clock.monotonic()
        items = [
            {
                "number": number,
                "kind": str(active.fault.kind),
                "targets": list(active.fault.targets),
                "secondsLeft": round(max(0.0, active.until - now), 3),
            }
            for number, active in self._active.items()
        ]
        return {"kind": "FaultList", "items": items}


def build_manager(
    pods: LocalPods, clock: Clock, parts: Mapping[FaultKind, Component], tasks: asyncio.TaskGroup
) -> FaultManager:
    """Return the manager of the faults that a cluster supports. `tasks` runs the background work of active faults."""
    packets, removing = NetworkFaults(pods), ComponentFaults(parts)
    effects: dict[FaultKind, Effect] = {
        FaultKind.KILL: partial(containerfaults.kill_containers, pods),
        FaultKind.STOP: partial(containerfaults.pause_pod, pods),
        FaultKind.STARVE: partial(containerfaults.throttle_cpu, pods, tasks),
        FaultKind.PARTITION: packets.drop_packets,
        FaultKind.LOSE: packets.drop_packets,
        FaultKind.THROTTLE: packets.drop_packets,
        FaultKind.DELAY: packets.delay_packets,
        FaultKind.FILL: partial(containerfaults.fill_disk, pods),
        FaultKind.DRAIN: partial(nodefaults.remove_node, pods.client),
        FaultKind.LOSE_NODE: partial(nodefaults.remove_node, pods.client),
        FaultKind.APISERVER: removing.begin,
        FaultKind.WEBHOOKS: removing.begin,
        FaultKind.MANAGER: removing.begin,
    }
    return FaultManager(effects, clock)
