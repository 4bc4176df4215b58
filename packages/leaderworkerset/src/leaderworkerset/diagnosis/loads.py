"""The CPU, memory and GPU usage of ranks, from the metrics of their pods. Pure."""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from kuberuntime.objects import meta, quantity
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.quantity import ZERO, Quantity
from leaderworkerset.core.gang import demand
from leaderworkerset.core.gang.demand import Demand
from leaderworkerset.views.groups import Rank, View

CPU: Final = "cpu"
MEMORY: Final = "memory"
GPU: Final = "nvidia.com/gpu"
GPU_MEMORY: Final = "nvidia.com/gpu-memory"
"""The two GPU resources that only the embedded cluster's metrics have: busy GPUs, and bytes of their memory."""

RESOURCES: Final = (CPU, MEMORY, GPU, GPU_MEMORY)


class RankLoad(Struct, frozen=True):
    """The load of a rank; `used` is None if its pod was not measured."""

    view: View
    rank: Rank
    used: Demand | None

    def amount(self, name: str) -> Quantity:
        """Return the used amount of a resource; None if it is not known."""
        return (self.used or {}).get(name, ZERO)


def by_pod(metrics: Iterable[JSONObject]) -> Mapping[ObjectKey, Demand]:
    """Return the usage of pods, from objects of the kind PodMetrics."""
    return {
        meta.key(one): demand.add(*(quantity.parse_list(item.get("usage")) for item in one.get("containers") or ()))
        for one in metrics
    }


def loads(views: Iterable[View], used: Mapping[ObjectKey, Demand]) -> list[RankLoad]:
    """Return the load of each rank that has a pod, in order of sets, groups and ranks."""
    return [
        RankLoad(view, rank, used.get(ObjectKey(view.namespace, rank.pod)))
        for view in views
        for group in view.groups
        for rank in group.ranks
        if rank.object is not None
    ]


def bound(pod: JSONObject, name: str) -> Quantity | None:
    """Return the maximum usage of a resource by a pod: its limits if all containers have one, else its requests."""
    spec = meta.spec(pod)
    limits = [
        quantity.parse_list((container.get("resources") or {}).get("limits")).get(name)
        for container in spec.get("containers") or ()
    ]
    if limits and None not in limits:
        return sum((limit for limit in limits if limit is not None), ZERO)
    return demand.of_pod(spec).get(name)
