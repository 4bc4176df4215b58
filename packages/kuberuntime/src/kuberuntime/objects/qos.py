"""Computes the effective CPU and memory of containers, and the quality-of-service class of a pod.

The functions are pure.
"""

from typing import Final

from kuberuntime.objects import quantity
from kuberuntime.objects.meta import JSON, JSONObject

COMPUTE: Final = ("cpu", "memory")
"""The resources that determine the QoS class. They can be changed in an existing pod."""


def compute(resources: JSONObject) -> dict[str, dict[str, JSON]]:
    """Return the limits and requests for CPU and memory. A request defaults to the limit.

    >>> compute({"limits": {"cpu": "2", "example.com/gpu": "1"}, "requests": {"memory": "1Gi"}})
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
    amounts = [_positive(compute(holder.get("resources") or {})) for holder in holders]
    if not any(limits or requests for limits, requests in amounts):
        return "BestEffort"
    if all(len(limits) == len(COMPUTE) and requests == limits for limits, requests in amounts):
        return "Guaranteed"
    return "Burstable"


def _positive(
    resources: dict[str, dict[str, JSON]],
) -> tuple[dict[str, quantity.Quantity], dict[str, quantity.Quantity]]:
    limits, requests = (
        {name: amount for name, amount in quantity.parse_list(resources[kind]).items() if amount}
        for kind in ("limits", "requests")
    )
    return limits, requests
