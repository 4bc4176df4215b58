"""Reads the NVIDIA GPUs of this machine with NVML, from the optional package `nvidia-ml-py`.

The package is imported only when GPUs are requested. Every failure becomes an `AcceleratorError` that contains the next
step.
"""

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from localkube.errors import LocalkubeError
from localkube.kubelet.accelerators.accelerator import Accelerator, Inventory

PACKAGE: Final = "pip install nvidia-ml-py"
VENDORS: Final = {"0x1002": "AMD", "0x8086": "Intel"}
"""The PCI vendors whose GPUs are not supported, by number."""

DRM: Final = Path("/sys/class/drm")

APPLICATION_ERRORS: Final = frozenset({13, 31, 43, 45, 68, 109})
"""The XIDs that a faulty application causes, as opposed to a faulty GPU, as in NVIDIA's device plugin."""


class AcceleratorError(LocalkubeError):
    """The GPUs of this machine cannot be used. The message contains the reason and the solution."""


@contextmanager
def library() -> Iterator[Any]:
    """Load and initialize NVML in the context."""
    try:
        nvml: Any = importlib.import_module("pynvml")
    except ImportError as error:
        raise AcceleratorError(f"GPUs of this machine require nvidia-ml-py. Run `{PACKAGE}`") from error
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        raise AcceleratorError(f"the NVIDIA driver does not respond ({error}). {_describe_other_gpus()}") from error
    try:
        yield nvml
    finally:
        nvml.nvmlShutdown()


def _describe_other_gpus() -> str:
    """Describe the other GPUs of this machine, and the next step for the user."""
    numbers = set()
    for path in sorted(DRM.glob("card*/device/vendor")):
        with suppress(OSError):
            numbers.add(path.read_text().strip())
    vendors = [name for number, name in VENDORS.items() if number in numbers]
    if vendors:
        return (
            f"This machine has GPUs from {' and '.join(vendors)}, but only NVIDIA GPUs are supported. Use a number to "
            "simulate GPUs"
        )
    return "Check that `nvidia-smi` lists GPUs, or use a number to simulate GPUs"


def inventory(visible: str | None = None) -> Inventory:
    """Return the GPUs and MIG instances of this machine.

    `visible` is CUDA_VISIBLE_DEVICES of this process, which limits the devices.
    """
    with library() as nvml, _convert_errors(nvml):
        handles, accelerators, failing = [], list[Accelerator](), dict[str, str]()
        for index in range(nvml.nvmlDeviceGetCount()):
            try:
                handle = nvml.nvmlDeviceGetHandleByIndex(index)
                accelerators += _devices_of(nvml, handle, index)
                handles.append(handle)
            except nvml.NVMLError as error:
                failing[f"GPU {index}"] = str(error)
        uuids = [_decode(nvml.nvmlDeviceGetUUID(handle)) for handle in handles]
        return Inventory(
            driver=_decode(nvml.nvmlSystemGetDriverVersion()),
            accelerators=_visible_devices(accelerators, visible),
            distances={
                (uuid, other): _distance(nvml, handle, peer)
                for uuid, handle in zip(uuids, handles, strict=True)
                for other, peer in zip(uuids, handles, strict=True)
                if uuid != other
            },
            processes={uuid: _pids(nvml, handle) for uuid, handle in zip(uuids, handles, strict=True)},
            failing=failing,
            apart=tuple(
                (uuids[index], uuids[other])
                for index, other in combinations(range(len(uuids)), 2)
                if not _has_peer_access(nvml, handles[index], handles[other])
            ),
        )


@contextmanager
def _convert_errors(nvml: Any) -> Iterator[None]:
    try:
        yield
    except nvml.NVMLError as error:
        raise AcceleratorError(f"cannot list the GPUs of this machine: {error}. Check `nvidia-smi`") from error


def _devices_of(nvml: Any, handle: Any, index: int) -> Iterator[Accelerator]:
    """Yield a GPU, or its MIG instances if it has any."""
    gpu = _decode(nvml.nvmlDeviceGetUUID(handle))
    for instance in list(_instances(nvml, handle)) or [handle]:
        memory = nvml.nvmlDeviceGetMemoryInfo(instance)
        yield Accelerator(
            uuid=_decode(nvml.nvmlDeviceGetUUID(instance)),
            gpu=gpu,
            index=index,
            name=_decode(nvml.nvmlDeviceGetName(instance)),
            memory=int(memory.total),
            free=int(memory.free),
        )


def _instances(nvml: Any, handle: Any) -> Iterator[Any]:
    try:
        if not nvml.nvmlDeviceGetMigMode(handle)[0]:
            return
        most = nvml.nvmlDeviceGetMaxMigDeviceCount(handle)
    except nvml.NVMLError:  # this GPU does not support MIG
        return
    for number in range(most):
        with suppress(nvml.NVMLError):  # there is no instance with this number
            yield nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, number)


def _visible_devices(accelerators: Iterable[Accelerator], visible: str | None) -> tuple[Accelerator, ...]:
    """Return the devices in CUDA_VISIBLE_DEVICES, specified by number or by UUID prefix.

    The numbers are the same as in `nvidia-smi`.
    """
    devices = tuple(accelerators)
    if visible is None:
        return devices
    words = [word.strip() for word in visible.split(",")]
    return tuple(
        device
        for device in devices
        if any(
            device.index == int(word) if word.isascii() and word.isdecimal() else bool(word) and _is_named(device, word)
            for word in words
        )
    )


def _is_named(device: Accelerator, word: str) -> bool:
    """Return whether a string is a prefix of the UUID of a device or its GPU."""
    return device.uuid.startswith(word) or device.gpu.startswith(word)


def _distance(nvml: Any, handle: Any, other: Any) -> int:
    try:
        return int(nvml.nvmlDeviceGetTopologyCommonAncestor(handle, other))
    except nvml.NVMLError:  # virtual machines do not report a topology
        return 0


def _has_peer_access(nvml: Any, handle: Any, other: Any) -> bool:
    """Return whether two GPUs have peer memory access, or True if it is unknown."""
    try:
        status = nvml.nvmlDeviceGetP2PStatus(handle, other, nvml.NVML_P2P_CAPS_INDEX_READ)
    except nvml.NVMLError:
        return True
    return bool(status == nvml.NVML_P2P_STATUS_OK)


def _pids(nvml: Any, handle: Any) -> tuple[int, ...]:
    try:
        return tuple(int(process.pid) for process in nvml.nvmlDeviceGetComputeRunningProcesses(handle))
    except nvml.NVMLError:  # with MIG, only root can read processes
        return ()


def _decode(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


class HealthMonitor:
    """Reports GPUs that are lost from the bus or have a critical error (XID). A failure remains until a restart."""

    def __init__(self, nvml: Any, gpus: Mapping[str, str]) -> None:
        self._nvml = nvml
        self._gpus = gpus
        self._failed: dict[str, str] = {}
        self._events: Any = None
        with suppress(nvml.NVMLError):
            self._events = nvml.nvmlEventSetCreate()
        for gpu in dict.fromkeys(gpus.values()) if self._events is not None else ():
            with suppress(nvml.NVMLError):  # old GPUs do not support events, so their state is polled
                handle = nvml.nvmlDeviceGetHandleByUUID(gpu)
                nvml.nvmlDeviceRegisterEvents(handle, nvml.nvmlEventTypeXidCriticalError, self._events)

    def failures(self) -> dict[str, str]:
        """Return the failure reasons of devices by UUID."""
        for gpu in dict.fromkeys(self._gpus.values()):
            if gpu not in self._failed and (why := self._failure_reason(gpu)):
                self._failed[gpu] = why
        self._read_events()
        return {uuid: self._failed[gpu] for uuid, gpu in self._gpus.items() if gpu in self._failed}

    def _failure_reason(self, gpu: str) -> str:
        nvml = self._nvml
        try:
            nvml.nvmlDeviceGetMemoryInfo(nvml.nvmlDeviceGetHandleByUUID(gpu))
        except nvml.NVMLError as error:
            return str(error)
        return ""

    def _read_events(self) -> None:
        nvml = self._nvml
        while self._events is not None:
            try:
                event = nvml.nvmlEventSetWait_v2(self._events, 0)
                xid, gpu = int(event.eventData), _decode(nvml.nvmlDeviceGetUUID(event.device))
            except nvml.NVMLError:  # there are no more events
                return
            if xid not in APPLICATION_ERRORS:
                self._failed.setdefault(gpu, f"XID {xid}")


@contextmanager
def monitor(gpus: Mapping[str, str]) -> Iterator[Callable[[], dict[str, str]]]:
    """Yield a function that returns the failure reasons of devices. `gpus` contains the GPU of each device."""
    with library() as nvml:
        yield HealthMonitor(nvml, gpus).failures
