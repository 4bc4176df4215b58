"""Calculates the CPU, memory and GPU usage of ranks from pod metrics. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from kuberuntime.client.requests import Selection as Query
from kuberuntime.objects import meta, quantity
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.quantity import NANOS, ZERO, Quantity
from kuberuntime.objects.resources import POD_METRICS
from leaderworkerset.api import labels
from leaderworkerset.decisions.nodefit import Demand, add_demand, demand_of_pod
from lwsctl.model.groups import Rank
from lwsctl.model.leaderworkerset import View
from lwsctl.views import devices
from lwsctl.views.rankcolumns import RankColumns

CPU: Final = "cpu"
MEMORY: Final = "memory"
GPU: Final = "nvidia.com/gpu"
GPU_MEMORY: Final = "nvidia.com/gpu-memory"
"""GPU resources that only the embedded cluster reports. These are busy GPUs, and GPU memory in bytes."""

OF_GPUS: Final = (GPU, GPU_MEMORY)

TITLES: Final = {CPU: "CPU", MEMORY: "memory", GPU: "GPU", GPU_MEMORY: "GPU memory"}
"""The column title of each resource."""


class RankLoad(Struct, frozen=True):
    """The resource usage of a rank. `used` is None if its pod has no metrics."""

    view: View
    rank: Rank
    used: Demand | None

    def amount(self, name: str) -> Quantity:
        """Return the used amount of a resource, or None if it is unknown."""
        return (self.used or {}).get(name, ZERO)


def metrics_of(namespace: str, name: str = "") -> Query:
    """Return a label selector for the pod metrics of one LeaderWorkerSet or of all LeaderWorkerSets."""
    return Query(POD_METRICS, namespace, label_selector=f"{labels.NAME}={name}" if name else labels.NAME)


def by_pod(metrics: Iterable[JSONObject]) -> Mapping[ObjectKey, Demand]:
    """Return the usage by pod from PodMetrics objects."""
    return {
        meta.key(pod_metrics): add_demand(
            *(quantity.parse_list(item.get("usage")) for item in pod_metrics.get("containers") or ())
        )
        for pod_metrics in metrics
    }


def loads(views: Iterable[View], used: Mapping[ObjectKey, Demand]) -> list[RankLoad]:
    """Return the usage of each rank that has a pod, in the order of sets, groups and ranks."""
    return [
        RankLoad(view, rank, used.get(ObjectKey(view.namespace, rank.pod)))
        for view in views
        for group in view.groups
        for rank in group.ranks
        if rank.object is not None
    ]


def bound(pod: JSONObject, name: str) -> Quantity | None:
    """Return the maximum usage of a pod. It is based on limits if all containers have them, and else on requests."""
    spec = meta.spec(pod)
    limits = [
        quantity.parse_list((container.get("resources") or {}).get("limits")).get(name)
        for container in spec.get("containers") or ()
    ]
    if limits and None not in limits:
        return sum((limit for limit in limits if limit is not None), ZERO)
    return demand_of_pod(spec).get(name)


def measured(rows: Iterable[RankLoad]) -> tuple[str, ...]:
    """Return the resources that are shown as columns. GPUs are included only if they were measured."""
    names = {name for row in rows for name in row.used or {}}
    return () if not names else (CPU, MEMORY, *(OF_GPUS if names.intersection(OF_GPUS) else ()))


def columns(views: Iterable[View], used: Mapping[ObjectKey, Demand], now: datetime) -> RankColumns:
    """Return a column for each measured resource, with a cell for each rank that has a pod."""
    rows = loads(views, used)
    names = measured(rows)
    return RankColumns(
        [TITLES[name] for name in names], {meta.key(row.rank.object or {}): cells(row, names, now) for row in rows}
    )


def cells(row: RankLoad, names: Sequence[str], now: datetime) -> list[str]:
    """Return the usage and the maximum of each resource for a rank, or `-` if they are unknown."""
    return [_busy(row, now) if name == GPU else _cell(row, name) for name in names]


def sums(rows: Iterable[RankLoad], names: Sequence[str]) -> list[str]:
    """Return the total usage of each resource of several ranks."""
    rows = [*rows]
    return [amount_of(name, sum((row.amount(name) for row in rows), ZERO)) for name in names]


def _cell(row: RankLoad, name: str) -> str:
    if row.used is None or name not in row.used:
        return "-"
    most = bound(row.rank.object or {}, name)
    used = amount_of(name, row.used[name])
    return used if most is None else f"{used} of {amount_of(name, most)}"


def _busy(row: RankLoad, now: datetime) -> str:
    """Return the GPU utilization of a rank, and how long its GPUs have been idle."""
    own, used = len(devices.of_pod(row.rank.object)), (row.used or {}).get(GPU)
    if used is None or not own:
        return "-"
    idle = devices.idle(row.rank.object, now)
    return f"{round(100 * used.nanos / NANOS / own)}% of {own}" + (f" ({idle})" if idle else "")


def amount_of(name: str, value: Quantity) -> str:
    """Format an amount. CPUs have two decimal places, and memory is in Mi or Gi.

    >>> amount_of("cpu", Quantity(1_250_000_000)), amount_of("memory", Quantity(3 * 2**29 * 10**9))
    ('1.25', '1.5Gi')
    """
    if name in (CPU, GPU):
        return f"{value.nanos / NANOS:.2f}"
    mebibytes = value.nanos / NANOS / 2**20
    return f"{mebibytes / 1024:.1f}Gi".replace(".0Gi", "Gi") if mebibytes >= 1024 else f"{mebibytes:.0f}Mi"
