"""The quality-of-service class of a pod, from the requests and limits of its containers. Pure."""

from typing import Final

from kuberuntime.objects import quantity
from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.spec import podspec

COUNTED: Final = ("cpu", "memory")


def qos_class(pod: JSONObject) -> str:
    """Return Guaranteed, Burstable or BestEffort.

    >>> qos_class({"spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]}})
    'Guaranteed'
    """
    demands = [_demands(container) for container in podspec.all_containers(pod)]
    if not any(requests or limits for requests, limits in demands):
        return "BestEffort"
    if all(set(limits) == set(COUNTED) and (requests or limits) == limits for requests, limits in demands):
        return "Guaranteed"
    return "Burstable"


def _demands(container: JSONObject) -> tuple[dict[str, quantity.Quantity], dict[str, quantity.Quantity]]:
    resources = container.get("resources") or {}
    limits = _counted(resources.get("limits"))
    return limits | _counted(resources.get("requests")), limits


def _counted(resources: JSONObject | None) -> dict[str, quantity.Quantity]:
    return {name: amount for name, amount in quantity.parse_list(resources).items() if name in COUNTED and amount}
