"""Formats node capacity and pod requests for users. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from kuberuntime.objects import meta, podstate, quantity
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.quantity import ZERO, Quantity
from leaderworkerset.decisions.nodefit import Demand, add_demand, demand_of_pod
from lwsctl.diagnosis.causes.scheduling import amount_text

ByNode: TypeAlias = Mapping[str, Sequence[JSONObject]]
"""The pods on each node."""

FIRST: Final = ("cpu", "memory", "pods")
SELDOM: Final = ("ephemeral-storage", "hugepages-", "attachable-volumes-")
"""Resources that are shown only in a node description."""


def by_node(pods: Iterable[JSONObject]) -> ByNode:
    """Return the pods that use resources by node name."""
    occupants: dict[str, list[JSONObject]] = {}
    for pod in sorted(pods, key=meta.key):
        node = meta.spec(pod).get("nodeName")
        if node and not podstate.has_ended(pod):
            occupants.setdefault(node, []).append(pod)
    return occupants


def status(node: JSONObject) -> str:
    """Return the node status in the format of kubectl."""
    word = "Ready" if meta.is_condition_true(node, "Ready") else "NotReady"
    return f"{word},SchedulingDisabled" if meta.spec(node).get("unschedulable") else word


def names(nodes: Iterable[JSONObject]) -> list[str]:
    """Return the names of displayed resources. Common resources are first, and others are in alphabetical order."""
    return [
        *FIRST,
        *sorted(
            {
                name
                for node in nodes
                for name in allocatable(node)
                if (name not in FIRST and not name.startswith(SELDOM))
            }
        ),
    ]


def held(pods: Iterable[JSONObject]) -> Demand:
    """Return the sum of the requests of several pods."""
    return add_demand(*map(asked, pods))


def asked(pod: JSONObject) -> Demand:
    """Return the requests of a pod, including 1 for the `pods` resource."""
    return demand_of_pod(meta.spec(pod)) | {"pods": quantity.parse("1")}


def allocatable(node: JSONObject) -> Mapping[str, Quantity]:
    """Return the allocatable resources of a node."""
    return quantity.parse_list(meta.status(node).get("allocatable"))


def share(name: str, has: Quantity, usage: Demand | None) -> str:
    """Return the free and the total amount. If the used amount is unknown, return only the total.

    Pods can use more than the node's capacity if one of their devices failed.
    """
    whole = amount_text(has, name)
    return whole if usage is None else f"{amount_text(max(has - usage.get(name, ZERO), ZERO), name)} of {whole}"
