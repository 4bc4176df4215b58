"""Adds the measured usage to ranks, from the PodMetrics objects of their pods. Pure."""

from collections.abc import Iterable

from msgspec.structs import replace

from kuberuntime.objects import meta, quantity
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.quantity import ZERO, Quantity
from leaderworkerset.decisions.nodefit import add_demand, demand_of_pod
from lwsctl.model.groups import Rank, Usage
from lwsctl.model.leaderworkerset import View


def with_usage(views: Iterable[View], metrics: Iterable[JSONObject]) -> list[View]:
    """Return the views with the usage of each rank that has a pod and metrics."""
    by_pod = {meta.key(pod_metrics): pod_metrics for pod_metrics in metrics}

    def measured(rank: Rank) -> Rank:
        return measured_rank(rank, by_pod.get(meta.key(rank.object or {})))

    return [
        replace(view, groups=tuple(replace(group, ranks=tuple(map(measured, group.ranks))) for group in view.groups))
        for view in views
    ]


def measured_rank(rank: Rank, metrics: JSONObject | None) -> Rank:
    """Return a rank with the total usage of its containers, and the limit of each resource."""
    if metrics is None:
        return rank
    used = add_demand(*(quantity.parse_list(item.get("usage")) for item in metrics.get("containers") or ()))
    pod = rank.object or {}
    return replace(rank, usage={name: Usage(amount, limit_of(pod, name)) for name, amount in used.items()})


def limit_of(pod: JSONObject, name: str) -> Quantity | None:
    """Return the maximum usage of a pod. It is based on limits if all containers have them, and else on requests."""
    spec = meta.spec(pod)
    limits = [
        quantity.parse_list((container.get("resources") or {}).get("limits")).get(name)
        for container in spec.get("containers") or ()
    ]
    if limits and None not in limits:
        return sum((limit for limit in limits if limit is not None), ZERO)
    return demand_of_pod(spec).get(name)
