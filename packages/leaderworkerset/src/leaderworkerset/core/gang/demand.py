"""Computes the effective resource requests of pods and groups (R-GANG-5).

The request of a pod is the larger of two sums: all containers and sidecars, or the largest init container with the
sidecars that are started before it. Pod-level requests override it. The overhead of the RuntimeClass is added. Limits
are ignored.
"""

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from kuberuntime.objects import meta, quantity
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.quantity import ZERO, Quantity
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet

Demand: TypeAlias = Mapping[str, Quantity]

HUGE_PAGES: Final = "hugepages-"
WHOLE_POD: Final = ("cpu", "memory")
"""The resources that can be requested at pod level, in addition to huge pages."""


def of_pod(spec: JSONObject) -> dict[str, Quantity]:
    """Return the effective requests of a pod spec."""
    sidecars: dict[str, Quantity] = {}
    starting: dict[str, Quantity] = {}
    for container in spec.get("initContainers") or []:
        if container.get("restartPolicy") == "Always":
            sidecars = add(sidecars, _requests(container))
            starting = largest(starting, sidecars)
        else:
            starting = largest(starting, add(sidecars, _requests(container)))
    running = add(sidecars, *map(_requests, spec.get("containers") or []))
    whole = {
        name: amount for name, amount in _requests(spec).items() if (name in WHOLE_POD or name.startswith(HUGE_PAGES))
    }
    return add(largest(running, starting) | whole, quantity.parse_list(spec.get("overhead")))


def of_group(lws: LeaderWorkerSet) -> dict[str, Quantity]:
    """Return the total requests of a leader and its workers."""
    leader = of_pod(meta.spec(lws.leader_template))
    worker = of_pod(meta.spec(lws.spec.leader_worker_template.worker_template))
    return add(leader, {name: amount * (lws.size - 1) for name, amount in worker.items()} if lws.size > 1 else {})


def encode(demand: Demand) -> JSONObject:
    """Encode a resource list in the order of resource names."""
    return {name: str(amount) for name, amount in sorted(demand.items())}


def add(*demands: Demand) -> dict[str, Quantity]:
    """Return the sums by resource name."""
    return {name: quantity.total(amounts[name] for amounts in demands if name in amounts) for name in _names(demands)}


def largest(left: Demand, right: Demand) -> dict[str, Quantity]:
    """Return the maxima by resource name."""
    return {name: max(left.get(name, ZERO), right.get(name, ZERO)) for name in _names((left, right))}


def _names(demands: Iterable[Demand]) -> list[str]:
    return list(dict.fromkeys(name for amounts in demands for name in amounts))


def _requests(owner: JSONObject) -> dict[str, Quantity]:
    return quantity.parse_list((owner.get("resources") or {}).get("requests"))
