"""Reads the utilization and memory usage of devices with NVML."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from localkube.kubelet.accelerators.nvml import library


class DeviceUse(NamedTuple):
    """The usage of a device: its utilization (0 to 1), bytes of memory, and bytes by PID of each process.

    `busy` is None on MIG instances, which NVML does not measure.
    """

    busy: float | None
    memory: int
    programs: Mapping[int, int]


def read(uuids: Collection[str]) -> dict[str, DeviceUse]:
    """Return the usage of all responding devices by UUID. Raise an `AcceleratorError` without NVML."""
    uses = {}
    with library() as nvml:
        for uuid in uuids:
            with suppress(nvml.NVMLError):
                uses[uuid] = _read_device(nvml, nvml.nvmlDeviceGetHandleByUUID(uuid))
    return uses


def _read_device(nvml: Any, handle: Any) -> DeviceUse:
    busy, programs = None, []
    with suppress(nvml.NVMLError):
        busy = nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100
    with suppress(nvml.NVMLError):  # with MIG, only root can read processes
        programs = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
    memory = int(nvml.nvmlDeviceGetMemoryInfo(handle).used)
    # usedGpuMemory is None if the driver does not report memory per process
    return DeviceUse(busy, memory, {int(program.pid): int(program.usedGpuMemory or 0) for program in programs})
