"""Delegates scheduling of a LeaderWorkerSet to the Workload of an owner (N-K8S-16).

The annotation `group-template-name` names a template of that Workload. The Workload belongs to the nearest owner that
has a Workload. Input: the LeaderWorkerSet, and Workloads of its namespace. Output: whether the owner's Workload is
needed, and the Workload of one owner.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, OwnerReference
from leaderworkerset.api import labels
from leaderworkerset.api.conditions import WORKLOAD_SCHEDULING_CREATED
from leaderworkerset.core.policies import workloadnames
from leaderworkerset.core.policies.policy import LiveGroup

OF_WHOLE: Final = frozenset({"schedulingPolicy", "schedulingConstraints", "disruptionMode"})
"""The fields that combine all pods into one group. It has a PodGroup if there are replicas."""

NOT_READY: Final = "ParentWorkloadNotReady"


def is_delegated(lws: JSONObject) -> bool:
    """Return whether an owner's Workload describes the pods of a LeaderWorkerSet."""
    return labels.GROUP_TEMPLATE_NAME in meta.annotations(lws) and meta.spec(lws).get("scheduling") is not None


def is_parent_required(lws: JSONObject, shared: Sequence[JSONObject]) -> bool:
    """Return whether the owner's Workload is required to reconcile the LeaderWorkerSet.

    It is not needed if the objects of the whole set, `shared`, already exist.
    """
    if not is_delegated(lws):
        return False
    known = meta.find_condition(lws, WORKLOAD_SCHEDULING_CREATED.type) or {}
    is_done = known.get("status") == "True" and known.get("observedGeneration") == meta.generation(lws)
    shares = bool(OF_WHOLE & meta.spec(lws)["scheduling"].keys()) and meta.spec(lws).get("replicas") != 0
    return not is_done or (shares and not shared)


def is_parent_required_by(group: LiveGroup) -> bool:
    """Return whether the owner's Workload is required to reconcile a group without a PodGroup."""
    link = workloadnames.linked_pod_group(group.leader)
    return bool(link) and is_delegated(group.obj) and all(meta.name(obj) != link for obj in group.scheduling.objects)


def find_owner_workload(workloads: Iterable[JSONObject], owner: OwnerReference) -> JSONObject | None:
    """Return the Workload that is controlled by an owner and refers to it. Raise `ValueError` if there are two."""
    owned = [
        workload
        for workload in workloads
        if (meta.controller_of(workload) or {}).get("uid") == owner["uid"]
        and _refers_to(meta.spec(workload).get("controllerRef") or {}, owner)
    ]
    if len(owned) > 1:
        raise ValueError(f"several Workloads are controlled by {owner['kind']} {owner['name']}")
    return owned[0] if owned else None


def _refers_to(reference: JSONObject, owner: OwnerReference) -> bool:
    """Return whether a reference, with an empty core API group, refers to the owner."""
    group = owner["apiVersion"].rpartition("/")[0]
    kind_and_name = (reference.get("apiGroup") or "", reference.get("kind"), reference.get("name"))
    return kind_and_name == (group, owner["kind"], owner["name"])
