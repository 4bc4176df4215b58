"""Detects the real devices of this machine, and divides them among the nodes of a cluster."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from kuberuntime.texts.wording import join_names
from localkube.hostdevices import Devices, GpuReport
from localkube.kubelet.accelerators import nvml
from localkube.kubelet.accelerators.accelerator import Inventory, divide_devices, parse_shares

SHOWN: Final = 5
"""The maximum number of processes that a note lists."""

DRIVER: Final = Path("/dev/nvidiactl")
"""The device file that the NVIDIA driver creates."""

ENOUGH: Final = 0.9
"""The minimum fraction of free memory of a GPU that is considered unused."""


def discover_devices(argument: str, nodes: int, visible: str | None) -> Devices:
    """Return the devices for `host` or `host:N`. Raise a `ValueError` for an invalid value or too few devices."""
    shares = parse_shares(argument)
    inventory = nvml.inventory(visible)
    if not inventory.accelerators:
        hidden = "" if visible is None else f" in CUDA_VISIBLE_DEVICES={visible}"
        raise nvml.AcceleratorError(f"this machine has no NVIDIA GPU{hidden}. Check `nvidia-smi -L`")
    by_node = divide_devices(inventory, nodes, shares)
    return Devices(by_node=by_node, notes=tuple(device_notes(inventory, by_node, shares)))


def report(visible: str | None) -> GpuReport | None:
    """Return the state of the GPUs, or None if neither the NVML package nor a driver is installed."""
    if find_spec("pynvml") is None and not DRIVER.exists():
        return None
    try:
        inventory = nvml.inventory(visible)
    except nvml.AcceleratorError as error:
        return GpuReport(problem=str(error))
    return GpuReport(
        driver=inventory.driver,
        count=len(inventory.accelerators),
        failing=tuple(f"{gpu}: {why}" for gpu, why in inventory.failing.items()),
        busy=tuple(
            f"{accelerator.uuid} has {accelerator.free // 2**30} of {accelerator.memory // 2**30} GiB free"
            for accelerator in inventory.accelerators
            if accelerator.free < accelerator.memory * ENOUGH
        ),
        apart=tuple(f"{gpu} and {other}" for gpu, other in inventory.apart),
    )


def device_notes(inventory: Inventory, by_node: tuple[tuple[str, ...], ...], shares: int) -> Iterator[str]:
    """Yield notes about the devices of nodes, shares without isolation, and processes that already use the GPUs."""
    counts = ", ".join(f"node-{number}: {len(own)}" for number, own in enumerate(by_node))
    devices = inventory.accelerators
    models = ", ".join(dict.fromkeys(device.name for device in devices))
    yield f"GPUs of this machine: {len(devices)} ({models}; driver {inventory.driver}); nvidia.com/gpu by node: {counts}"
    if shares > 1:
        yield (
            f"each GPU is shared by up to {shares} containers, without memory limits and without isolation of failures"
        )
    yield from (f"{gpu} is excluded: {why}" for gpu, why in inventory.failing.items())
    for gpu in dict.fromkeys(device.gpu for device in devices):
        if pids := inventory.processes.get(gpu, ()):
            yield f"{gpu} is in use by other processes: {join_names([*map(str, pids)], SHOWN)}"
