"""Formats the CPU, memory and GPU usage of ranks. Pure."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from kuberuntime.client.requests import Selection as Query
from kuberuntime.objects.quantity import NANOS, ZERO, Quantity
from kuberuntime.objects.resources import POD_METRICS
from leaderworkerset.api import labels
from lwsctl.model.groups import Rank
from lwsctl.views import devices

CPU: Final = "cpu"
MEMORY: Final = "memory"
GPU: Final = "nvidia.com/gpu"
GPU_MEMORY: Final = "nvidia.com/gpu-memory"
"""GPU resources that only the embedded cluster reports. These are busy GPUs, and GPU memory in bytes."""

OF_GPUS: Final = (GPU, GPU_MEMORY)

TITLES: Final = {CPU: "CPU", MEMORY: "memory", GPU: "GPU", GPU_MEMORY: "GPU memory"}
"""The column title of each resource."""


def metrics_selector(namespace: str, name: str = "") -> Query:
    """Return a label selector for the pod metrics of one LeaderWorkerSet or of all LeaderWorkerSets."""
    return Query(POD_METRICS, namespace, label_selector=f"{labels.NAME}={name}" if name else labels.NAME)


def resources(ranks: Iterable[Rank]) -> tuple[str, ...]:
    """Return the resources that are shown as columns. GPUs are included only if they were measured."""
    names = {name for rank in ranks for name in rank.usage or {}}
    return () if not names else (CPU, MEMORY, *(OF_GPUS if names.intersection(OF_GPUS) else ()))


def usage_cells(rank: Rank, names: Sequence[str], now: datetime) -> list[str]:
    """Return the usage and the maximum of each resource for a rank, or `-` if they are unknown."""
    return [_gpu_utilization(rank, now) if name == GPU else _usage_cell(rank, name) for name in names]


def usage_totals(ranks: Sequence[Rank], names: Sequence[str]) -> list[str]:
    """Return the total usage of each resource of several ranks."""
    return [format_amount(name, sum((used_amount(rank, name) for rank in ranks), ZERO)) for name in names]


def used_amount(rank: Rank, name: str) -> Quantity:
    """Return the used amount of a resource, or 0 if it is unknown."""
    usage = (rank.usage or {}).get(name)
    return ZERO if usage is None else usage.amount


def _usage_cell(rank: Rank, name: str) -> str:
    usage = (rank.usage or {}).get(name)
    if usage is None:
        return "-"
    used = format_amount(name, usage.amount)
    return used if usage.limit is None else f"{used} of {format_amount(name, usage.limit)}"


def _gpu_utilization(rank: Rank, now: datetime) -> str:
    """Return the GPU utilization of a rank, and how long its GPUs have been idle."""
    own, used = len(devices.pod_devices(rank.object)), (rank.usage or {}).get(GPU)
    if used is None or not own:
        return "-"
    idle = devices.idle_text(rank.object, now)
    return f"{round(100 * used.amount.nanos / NANOS / own)}% of {own}" + (f" ({idle})" if idle else "")


def format_amount(name: str, value: Quantity) -> str:
    """Format an amount. CPUs have two decimal places, and memory is in Mi or Gi.

    >>> format_amount("cpu", Quantity(1_250_000_000)), format_amount("memory", Quantity(3 * 2**29 * 10**9))
    ('1.25', '1.5Gi')
    """
    if name in (CPU, GPU):
        return f"{value.nanos / NANOS:.2f}"
    mebibytes = value.nanos / NANOS / 2**20
    return f"{mebibytes / 1024:.1f}Gi".replace(".0Gi", "Gi") if mebibytes >= 1024 else f"{mebibytes:.0f}Mi"
