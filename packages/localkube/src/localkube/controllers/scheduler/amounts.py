"""Represents resource amounts as integers, for pod requests and node capacity.

CPU is in thousandths, and other resources are in units, rounded up. A pod's request is the sum of its containers and
sidecars, or its largest init container with earlier sidecars, plus the overhead and `pods: 1`.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

from kuberuntime.objects import meta, quantity
from kuberuntime.objects.meta import JSON, JSONObject

Amounts: TypeAlias = Mapping[str, int]

CPU: Final = "cpu"
MEMORY: Final = "memory"
PODS: Final = "pods"
MILLI: Final = 1000
NANOS_PER_MILLI: Final = quantity.NANOS // MILLI


def parse(resources: Mapping[str, JSON] | None) -> dict[str, int]:
    """Parse a resource list.

    >>> parse({"cpu": "1500m", "memory": "1Ki", "nvidia.com/gpu": 8})
    {'cpu': 1500, 'memory': 1024, 'nvidia.com/gpu': 8}
    """
    return {name: _amount(name, value) for name, value in (resources or {}).items()}


def pod_requests(pod: JSONObject) -> dict[str, int]:
    """Return the amounts that must be free on a node for the pod."""
    spec = meta.spec(pod)
    sidecars: dict[str, int] = {}
    starting: dict[str, int] = {}
    for container in spec.get("initContainers") or []:
        requests = _container_requests(container)
        if container.get("restartPolicy") == "Always":
            sidecars = add(sidecars, requests)
            starting = largest(starting, sidecars)
        else:
            starting = largest(starting, add(sidecars, requests))
    running = sidecars
    for container in spec.get("containers") or []:
        running = add(running, _container_requests(container))
    whole_pod = spec.get("resources") or {}
    total = largest(running, starting) | parse(whole_pod.get("limits")) | parse(whole_pod.get("requests"))
    return add(total, parse(spec.get("overhead"))) | {PODS: 1}


def add(left: Amounts, right: Amounts) -> dict[str, int]:
    """Add amounts by name."""
    return {name: left.get(name, 0) + right.get(name, 0) for name in left.keys() | right.keys()}


def largest(left: Amounts, right: Amounts) -> dict[str, int]:
    """Return the larger amount for each name."""
    return {name: max(left.get(name, 0), right.get(name, 0)) for name in left.keys() | right.keys()}


def _container_requests(container: JSONObject) -> dict[str, int]:
    resources = container.get("resources") or {}
    return parse(resources.get("limits")) | parse(resources.get("requests"))


def _amount(name: str, value: JSON) -> int:
    amount = quantity.parse(value)
    return -(-amount.nanos // NANOS_PER_MILLI) if name == CPU else amount.ceil()
