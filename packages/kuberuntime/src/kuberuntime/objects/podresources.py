"""Computes the effective resources of containers and pods, and the quality-of-service class of a pod. Pure."""

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from kuberuntime.objects import quantity
from kuberuntime.objects.meta import JSON, JSONObject
from kuberuntime.objects.quantity import Quantity

Amount = TypeVar("Amount", int, Quantity)

COMPUTE: Final = ("cpu", "memory")
"""The resources that determine the QoS class. They can be changed in an existing pod."""


def compute_resources(resources: JSONObject) -> dict[str, dict[str, JSON]]:
    """Return the limits and requests for CPU and memory. A request defaults to the limit.

    >>> compute_resources({"limits": {"cpu": "2", "example.com/gpu": "1"}, "requests": {"memory": "1Gi"}})
    {'limits': {'cpu': '2'}, 'requests': {'cpu': '2', 'memory': '1Gi'}}
    """
    limits = resources.get("limits") or {}
    by_kind = {"limits": limits, "requests": limits | (resources.get("requests") or {})}
    return {kind: {name: amounts[name] for name in COMPUTE if name in amounts} for kind, amounts in by_kind.items()}


def without_compute(container: JSONObject) -> JSONObject:
    """Return a container without its CPU and memory resources.

    >>> without_compute({"resources": {"limits": {"cpu": "2", "example.com/gpu": "1"}}})["resources"]
    {'limits': {'example.com/gpu': '1'}, 'requests': {}}
    """
    resources = container.get("resources") or {}
    others = {
        kind: {name: amount for name, amount in (resources.get(kind) or {}).items() if name not in COMPUTE}
        for kind in ("limits", "requests")
    }
    return container | {"resources": resources | others}


def qos_class(spec: JSONObject) -> str:
    """Return the QoS class, which determines the eviction order: Guaranteed, Burstable or BestEffort.

    >>> qos_class({"containers": [{"resources": {"requests": {"cpu": "1"}}}]})
    'Burstable'
    """
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    holders = [spec] if spec.get("resources") else containers
    amounts = [_positive_amounts(compute_resources(holder.get("resources") or {})) for holder in holders]
    if not any(limits or requests for limits, requests in amounts):
        return "BestEffort"
    if all(len(limits) == len(COMPUTE) and requests == limits for limits, requests in amounts):
        return "Guaranteed"
    return "Burstable"


def _positive_amounts(
    resources: dict[str, dict[str, JSON]],
) -> tuple[dict[str, Quantity], dict[str, Quantity]]:
    limits, requests = (
        {name: amount for name, amount in quantity.parse_list(resources[kind]).items() if amount}
        for kind in ("limits", "requests")
    )
    return limits, requests


def effective_requests(spec: JSONObject, requests: Callable[[JSONObject], dict[str, Amount]]) -> dict[str, Amount]:
    """Return the requests of a pod, without pod-level requests and overhead, as kube-scheduler computes them.

    They are the larger of two sums for each resource: all containers and sidecars, or the largest init container with
    the sidecars that are started before it. `requests` returns the requests of one container.
    """
    sidecars: dict[str, Amount] = {}
    starting: dict[str, Amount] = {}
    for container in spec.get("initContainers") or []:
        if container.get("restartPolicy") == "Always":
            sidecars = add_amounts(sidecars, requests(container))
            starting = maximum_amounts(starting, sidecars)
        else:
            starting = maximum_amounts(starting, add_amounts(sidecars, requests(container)))
    return maximum_amounts(add_amounts(sidecars, *map(requests, spec.get("containers") or [])), starting)


def add_amounts(*amounts: Mapping[str, Amount]) -> dict[str, Amount]:
    """Return the sums by resource name."""
    sums: dict[str, Amount] = {}
    for names in amounts:
        for name, amount in names.items():
            sums[name] = sums[name] + amount if name in sums else amount
    return sums


def maximum_amounts(left: Mapping[str, Amount], right: Mapping[str, Amount]) -> dict[str, Amount]:
    """Return the maxima by resource name."""
    return {**left, **{name: max(left.get(name, amount), amount) for name, amount in right.items()}}
