# ruff: noqa: N802 - the names in the real module
"""Replaces `pynvml` of nvidia-ml-py. A JSON file describes the machine, and is reread on every call.

The path of the file is in FAKE_NVML. It has `driver` and `gpus`; each GPU has `uuid`, and may have `mig` (UUIDs of
instances), `lost`, `pids`, `busy` (percent), `xids` (reported once each) and `near` (the number of its group of close
GPUs).
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NVML_ERROR_NOT_SUPPORTED = 3
NVML_ERROR_NOT_FOUND = 6
NVML_ERROR_DRIVER_NOT_LOADED = 9
NVML_ERROR_TIMEOUT = 10
NVML_ERROR_GPU_IS_LOST = 15
NVML_P2P_CAPS_INDEX_READ = 0
NVML_P2P_STATUS_OK = 0
nvmlEventTypeXidCriticalError = 8  # noqa: N816 - the name in the real module
TEXTS = {3: "Not Supported", 6: "Not Found", 9: "Driver Not Loaded", 10: "Timeout", 15: "GPU is lost"}
CLOSE, FAR = 10, 50
MEMORY = 80 * 2**30


class NVMLError(Exception):
    """A library error with its number."""

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value

    def __str__(self) -> str:
        return TEXTS[self.value]


@dataclass(frozen=True)
class Handle:
    """A GPU or a MIG instance."""

    gpu: str
    uuid: str


@dataclass
class Memory:
    """The memory of a device in bytes."""

    total: int
    free: int
    used: int


@dataclass
class Process:
    """A process that uses a GPU."""

    pid: int
    usedGpuMemory: int  # noqa: N815 - the name in the real module


@dataclass
class Utilization:
    """The utilization of a GPU and of its memory, in percent."""

    gpu: int
    memory: int


@dataclass
class Event:
    """A critical error event."""

    device: Handle
    eventType: int  # noqa: N815 - the name in the real module
    eventData: int  # noqa: N815 - likewise


def _machine() -> Any:
    return json.loads(Path(os.environ["FAKE_NVML"]).read_text())


def _gpu(handle: Handle) -> Any:
    gpu = next((gpu for gpu in _machine()["gpus"] if gpu["uuid"] == handle.gpu), None)
    if gpu is None or gpu.get("lost"):
        raise NVMLError(NVML_ERROR_GPU_IS_LOST)
    return gpu


def nvmlInit() -> None:
    if _machine().get("driver") is None:
        raise NVMLError(NVML_ERROR_DRIVER_NOT_LOADED)


def nvmlShutdown() -> None:
    """Do not release anything."""


def nvmlSystemGetDriverVersion() -> str:
    return str(_machine()["driver"])


def nvmlDeviceGetCount() -> int:
    return len(_machine()["gpus"])


def nvmlDeviceGetHandleByIndex(index: int) -> Handle:
    uuid = _machine()["gpus"][index]["uuid"]
    return Handle(uuid, uuid)


def nvmlDeviceGetHandleByUUID(uuid: str) -> Handle:
    for gpu in _machine()["gpus"]:
        if uuid in (gpu["uuid"], *gpu.get("mig", ())):
            return Handle(gpu["uuid"], uuid)
    raise NVMLError(NVML_ERROR_NOT_FOUND)


def nvmlDeviceGetUUID(handle: Handle) -> str:
    return handle.uuid


def nvmlDeviceGetName(handle: Handle) -> str:
    return "Fake GPU" if handle.uuid == handle.gpu else "Fake GPU MIG 1g.10gb"


def nvmlDeviceGetMemoryInfo(handle: Handle) -> Memory:
    used = 2**30 * len(_gpu(handle).get("pids", ()))
    return Memory(MEMORY, MEMORY - used, used)


def nvmlDeviceGetMigMode(handle: Handle) -> list[int]:
    gpu = _gpu(handle)
    if "mig" not in gpu:
        raise NVMLError(NVML_ERROR_NOT_SUPPORTED)
    return [int(bool(gpu["mig"]))] * 2


def nvmlDeviceGetMaxMigDeviceCount(handle: Handle) -> int:
    return 7 if _gpu(handle) else 0


def nvmlDeviceGetMigDeviceHandleByIndex(handle: Handle, index: int) -> Handle:
    instances = _gpu(handle)["mig"]
    if index >= len(instances):
        raise NVMLError(NVML_ERROR_NOT_FOUND)
    return Handle(handle.gpu, instances[index])


def nvmlDeviceGetTopologyCommonAncestor(handle: Handle, other: Handle) -> int:
    return CLOSE if _gpu(handle).get("near", 0) == _gpu(other).get("near", 0) else FAR


def nvmlDeviceGetP2PStatus(handle: Handle, other: Handle, index: int) -> int:
    return NVML_P2P_STATUS_OK if nvmlDeviceGetTopologyCommonAncestor(handle, other) == CLOSE else 3


def nvmlDeviceGetComputeRunningProcesses(handle: Handle) -> list[Process]:
    return [Process(pid, 2**30) for pid in _gpu(handle).get("pids", ())]


def nvmlDeviceGetUtilizationRates(handle: Handle) -> Utilization:
    gpu = _gpu(handle)
    if handle.uuid != handle.gpu:
        raise NVMLError(NVML_ERROR_NOT_SUPPORTED)
    return Utilization(int(gpu.get("busy", 0)), 0)


def nvmlEventSetCreate() -> set[tuple[str, int]]:
    return set()


def nvmlDeviceRegisterEvents(handle: Handle, types: int, events: set[tuple[str, int]]) -> None:
    """Report all events of all GPUs."""


def nvmlEventSetWait_v2(events: set[tuple[str, int]], timeout: int) -> Event:
    for gpu in _machine()["gpus"]:
        for xid in gpu.get("xids", ()):
            if (gpu["uuid"], xid) not in events:
                events.add((gpu["uuid"], xid))
                return Event(Handle(gpu["uuid"], gpu["uuid"]), nvmlEventTypeXidCriticalError, xid)
    raise NVMLError(NVML_ERROR_TIMEOUT)
