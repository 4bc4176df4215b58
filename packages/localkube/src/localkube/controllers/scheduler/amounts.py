"""Represents resource amounts as integers, for pod requests and node capacity.

CPU is in thousandths, and other resources are in units, rounded up. The request of a pod includes its overhead and
`pods: 1`.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

from kuberuntime.objects import meta, podresources, quantity
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
    whole_pod = spec.get("resources") or {}
    total = podresources.effective_requests(spec, _container_requests)
    total |= parse(whole_pod.get("limits")) | parse(whole_pod.get("requests"))
    return podresources.add_amounts(total, parse(spec.get("overhead"))) | {PODS: 1}


def _container_requests(container: JSONObject) -> dict[str, int]:
    resources = container.get("resources") or {}
    return parse(resources.get("limits")) | parse(resources.get("requests"))


def _amount(name: str, value: JSON) -> int:
    amount = quantity.parse(value)
    return -(-amount.nanos // NANOS_PER_MILLI) if name == CPU else amount.ceil()
