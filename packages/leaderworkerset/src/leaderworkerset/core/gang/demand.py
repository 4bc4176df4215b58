"""Computes the effective resource requests of pods and groups (R-GANG-5).

Pod-level requests override the requests of the containers. The overhead of the RuntimeClass is added. Limits are
ignored.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

from kuberuntime.objects import meta, quantity
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.podresources import add_amounts, effective_requests
from kuberuntime.objects.quantity import Quantity
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet

Demand: TypeAlias = Mapping[str, Quantity]

HUGE_PAGES: Final = "hugepages-"
WHOLE_POD: Final = ("cpu", "memory")
"""The resources that can be requested at pod level, in addition to huge pages."""


def pod_requests(spec: JSONObject) -> dict[str, Quantity]:
    """Return the effective requests of a pod spec."""
    pod_amounts = {
        name: amount for name, amount in _requests(spec).items() if (name in WHOLE_POD or name.startswith(HUGE_PAGES))
    }
    return add_amounts(effective_requests(spec, _requests) | pod_amounts, quantity.parse_list(spec.get("overhead")))


def group_requests(lws: LeaderWorkerSet) -> dict[str, Quantity]:
    """Return the total requests of a leader and its workers."""
    leader = pod_requests(meta.spec(lws.leader_template))
    worker = pod_requests(meta.spec(lws.spec.leader_worker_template.worker_template))
    return add_amounts(
        leader, {name: amount * (lws.size - 1) for name, amount in worker.items()} if lws.size > 1 else {}
    )


def encode(demand: Demand) -> JSONObject:
    """Encode a resource list in the order of resource names."""
    return {name: str(amount) for name, amount in sorted(demand.items())}


def _requests(owner: JSONObject) -> dict[str, Quantity]:
    return quantity.parse_list((owner.get("resources") or {}).get("requests"))
