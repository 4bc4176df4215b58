"""Monitors the real devices. Writes the number of healthy devices to the nodes, and idle devices to the pods."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import structlog

from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.errors import KubeError
from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NODES
from kuberuntime.plan import guarded_patch
from localkube.kubelet.accelerators import nvml, usage
from localkube.kubelet.accelerators.accelerator import device_uuid
from localkube.kubelet.accelerators.deviceallocations import DeviceAllocations
from localkube.kubelet.node.deviceidleness import DeviceIdleness
from localkube.wellknown import ACCELERATORS_HEALTHY, GPU

PAUSE: Final = 5.0
"""The interval between two device checks, in seconds."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class DeviceHealth:
    """Reports failed devices to `report`, and to their nodes."""

    def __init__(
        self, client: Client, ledger: DeviceAllocations, clock: Clock, report: Callable[[Mapping[str, str]], None]
    ) -> None:
        self._client = client
        self._allocations = ledger
        self._clock = clock
        self._report = report
        self._written: Mapping[str, str] = {}

    async def run(self, idleness: DeviceIdleness, pause: float = PAUSE) -> None:
        """Check the devices until cancelled."""
        inventory = await asyncio.to_thread(nvml.inventory)
        with nvml.monitor({accelerator.uuid: accelerator.gpu for accelerator in inventory.accelerators}) as failures:
            while True:
                await self.update(await asyncio.to_thread(failures))
                uuids = {device_uuid(device) for _, _, device in self._allocations.allocated_devices()}
                await idleness.update(await asyncio.to_thread(usage.read, uuids) if uuids else {})
                await asyncio.sleep(pause)

    async def update(self, failures: Mapping[str, str]) -> None:
        """Record the currently failed devices.

        Writes that the API server refuses are repeated after the next check.
        """
        self._report(failures)
        if failures == self._written:
            return
        try:
            for name in self._allocations.nodes:
                await self._write(name, failures)
        except KubeError as error:
            log.warning("failed to write the health of devices", error=str(error))
        else:
            self._written = dict(failures)

    async def _write(self, name: str, failures: Mapping[str, str]) -> None:
        node = await self._client.get(NODES, ObjectKey("", name))
        own = dict.fromkeys(map(device_uuid, self._allocations.devices_of_node(name)))
        failing = {uuid: failures[uuid] for uuid in own if uuid in failures}
        others = [
            condition
            for condition in meta.status(node).get("conditions") or []
            if condition["type"] != ACCELERATORS_HEALTHY
        ]
        change: JSONObject = {
            "status": {
                "allocatable": {GPU: str(len(self._allocations.healthy_devices(name)))},
                "conditions": [*others, self._condition(failing)],
            }
        }
        guarded = guarded_patch(NODES, node, change)
        await self._client.patch(NODES, guarded.key, guarded.patch, kind="merge", subresource="status")

    def _condition(self, failing: Mapping[str, str]) -> JSONObject:
        words = "; ".join(f"{uuid} is unhealthy: {why}" for uuid, why in failing.items())
        moment = timestamps.render(self._clock.now())
        return {
            "type": ACCELERATORS_HEALTHY,
            "status": "False" if failing else "True",
            "reason": "DeviceFailed" if failing else "DevicesHealthy",
            "message": words or "all devices respond",
            "lastHeartbeatTime": moment,
            "lastTransitionTime": moment,
        }
