"""Measures the utilization and memory usage of the devices of containers.

A device of one container counts as a whole. Of a shared GPU, only the memory of the container's own programs counts:
NVML measures how busy a GPU is only for the whole GPU.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import structlog

from kuberuntime.objects.meta import UID
from localkube.kubelet.accelerators import usage
from localkube.kubelet.accelerators.accelerator import device_uuid
from localkube.kubelet.accelerators.nvml import AcceleratorError
from localkube.kubelet.accelerators.usage import DeviceUse
from localkube.kubelet.processes import processtree
from localkube.podaccess import DeviceUsage

Owned: TypeAlias = Mapping[UID, Mapping[str, Sequence[str]]]
"""The devices of each container, by pod and container name."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


async def measure(records: Owned, running: Mapping[int, tuple[UID, str]]) -> Mapping[UID, Mapping[str, DeviceUsage]]:
    """Return the load of the devices of running containers. `running` contains them by the PID of their process."""
    allocated = {device for record in records.values() for devices in record.values() for device in devices}
    uuids = {device_uuid(device) for device in allocated}
    try:
        uses = await asyncio.to_thread(usage.read, uuids) if uuids else {}
    except AcceleratorError as error:
        log.warning("failed to measure devices", error=str(error))
        uses = {}
    # for a share, only the processes of the container count
    processes = await asyncio.to_thread(processtree.read) if uses and allocated != uuids else {}
    loads: dict[UID, dict[str, DeviceUsage]] = {}
    for pid, (uid, name) in running.items():
        if devices := [device for device in records.get(uid, {}).get(name, ()) if device_uuid(device) in uses]:
            programs = {pid, *processtree.descendants([pid], processes)}
            loads.setdefault(uid, {})[name] = device_usage(devices, uses, programs)
    return loads


def device_usage(devices: Sequence[str], uses: Mapping[str, DeviceUse], programs: set[int]) -> DeviceUsage:
    """Return the load of the devices of one container, whose processes have these PIDs.

    >>> device_usage(["GPU-1", "GPU-2"], {"GPU-1": DeviceUse(0.5, 9, {}), "GPU-2": DeviceUse(0.25, 1, {})}, {7})
    DeviceUsage(busy=0.75, memory=10)
    >>> device_usage(["GPU-1::0"], {"GPU-1": DeviceUse(0.5, 9, {7: 4, 8: 5})}, {7})
    DeviceUsage(busy=None, memory=4)
    """
    busy: list[float | None] = []
    memory = 0
    for device in devices:
        use = uses[device_uuid(device)]
        is_full_device = device == device_uuid(device)
        busy.append(use.busy if is_full_device else None)
        memory += use.memory if is_full_device else sum(size for pid, size in use.programs.items() if pid in programs)
    measured = [share for share in busy if share is not None]
    return DeviceUsage(sum(measured) if len(measured) == len(busy) else None, memory)
