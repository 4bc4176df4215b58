"""Defines a node, with the amounts that it has and that its pods request. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from msgspec import Struct

from kuberuntime.objects import meta, podstate, quantity
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.quantity import ZERO, Quantity
from leaderworkerset.decisions.nodefit import Demand, add_demand, demand_of_pod


class Node(Struct, frozen=True, dict=True):
    """A node and the pods that use its resources, or None if the pods in all namespaces are unknown."""

    object: JSONObject
    pods: Sequence[JSONObject] | None

    @property
    def name(self) -> str:
        """Return the name."""
        return meta.name(self.object)

    @property
    def is_ready(self) -> bool:
        """Return whether the kubelet reports that the node is ready."""
        return meta.is_condition_true(self.object, "Ready")

    @property
    def status(self) -> str:
        """Return the node status in the format of kubectl."""
        word = "Ready" if self.is_ready else "NotReady"
        return f"{word},SchedulingDisabled" if meta.spec(self.object).get("unschedulable") else word

    @cached_property
    def allocatable(self) -> Mapping[str, Quantity]:
        """Return the allocatable resources."""
        return quantity.parse_list(meta.status(self.object).get("allocatable"))

    @cached_property
    def requested(self) -> Demand:
        """Return the sum of the requests of the known pods."""
        return add_demand(*map(pod_requests, self.pods or ()))

    def free(self, name: str) -> Quantity:
        """Return the amount that is not requested. It is 0 if pods request more because devices failed."""
        return max(self.allocatable.get(name, ZERO) - self.requested.get(name, ZERO), ZERO)


def nodes_of(nodes: Iterable[JSONObject], pods: Iterable[JSONObject] | None) -> list[Node]:
    """Return the nodes with their pods in all namespaces, unless `pods` is None."""
    by_node: dict[str, list[JSONObject]] = {}
    for pod in sorted(pods or (), key=meta.key):
        if not podstate.has_ended(pod):
            by_node.setdefault(str(meta.spec(pod).get("nodeName") or ""), []).append(pod)
    return [Node(node, None if pods is None else by_node.get(meta.name(node), [])) for node in nodes]


def pod_requests(pod: JSONObject) -> Demand:
    """Return the requests of a pod, including 1 for the `pods` resource."""
    return demand_of_pod(meta.spec(pod)) | {"pods": quantity.parse("1")}
