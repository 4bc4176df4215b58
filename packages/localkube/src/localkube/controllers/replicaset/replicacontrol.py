"""Determines the pods of a ReplicaSet to create and delete, and the content of its status.

Mirrors `manageReplicas` and `calculateStatus`. Pods that terminated or are being deleted do not count. A plan creates
or deletes at most `AT_ONCE` pods. A failure stops the batch (slow start) and sets the condition ReplicaFailure, until
the number of pods is correct.

Pods are deleted in the order of `ActivePodsWithRanks`. Ages are compared by order of magnitude (powers of two of
nanoseconds). If it is equal, the UID decides, so that the youngest pod is not always deleted.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cmp_to_key
from typing import Final

from msgspec import Struct

from kuberuntime.objects import decimals, meta, podstate, timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS, REPLICA_SETS
from kuberuntime.plan import Action, Create, Delete, Finally, Plan, changed_status, concurrently, guarded_patch
from localkube.controllers import eventobjects, podhealth

AT_ONCE: Final = 500
FAILURE: Final = "ReplicaFailure"


class ObservedReplicaSet(Struct, frozen=True, kw_only=True):
    """All inputs of the decision: the ReplicaSet, its pods, the pods of its siblings, and names for new pods."""

    replicaset: JSONObject
    pods: Sequence[JSONObject]
    related: Sequence[JSONObject]
    names: Iterable[str]
    now: datetime


def is_active(pod: JSONObject) -> bool:
    """Return whether the pod is active, which means that it has not terminated and is not being deleted."""
    return not podstate.has_ended(pod) and not meta.is_deleting(pod)


def missing_pods(replicaset: JSONObject, pods: Iterable[JSONObject]) -> int:
    """Return the number of missing pods, which is negative if there are too many pods."""
    return int(meta.spec(replicaset)["replicas"]) - sum(map(is_active, pods))


def plan(observed: ObservedReplicaSet) -> Plan:
    """Return the next actions for a ReplicaSet."""
    replicaset = observed.replicaset
    status = build_status(observed)
    changes = () if meta.is_deleting(replicaset) else _changes(observed)
    actions: tuple[Action, ...] = ()
    if changes:
        reason = "FailedCreate" if isinstance(changes[0], Create) else "FailedDelete"
        failed = guarded_patch(REPLICA_SETS, replicaset, _with_failure(observed, status, reason), subresource="status")
        actions = (Finally(actions=concurrently(changes), on_failure=(failed,)),)
    actions += changed_status(REPLICA_SETS, replicaset, status)
    active = filter(is_active, observed.pods)
    return Plan(
        actions, podhealth.seconds_until_available(active, podhealth.min_ready_seconds(replicaset), observed.now)
    )


def build_pod(replicaset: JSONObject, name: str) -> JSONObject:
    """Build a pod from the ReplicaSet's template."""
    template = meta.spec(replicaset)["template"]
    head = meta.metadata(template)
    copied = {field: head[field] for field in ("labels", "annotations", "finalizers") if head.get(field)}
    metadata = {
        "name": name,
        "generateName": f"{meta.name(replicaset)}-",
        "namespace": meta.namespace(replicaset),
        "ownerReferences": [meta.controller_reference(replicaset)],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata | copied, "spec": meta.spec(template)}


def build_status(observed: ObservedReplicaSet) -> JSONObject:
    """Build the whole status. Counts of 0 are omitted if the API type omits them."""
    replicaset = observed.replicaset
    active = [pod for pod in observed.pods if is_active(pod)]
    template_labels = meta.labels(meta.spec(replicaset)["template"]).items()
    seconds = podhealth.min_ready_seconds(replicaset)
    failures = [
        condition for condition in meta.status(replicaset).get("conditions") or () if condition["type"] == FAILURE
    ]
    optional = {
        "fullyLabeledReplicas": sum(template_labels <= meta.labels(pod).items() for pod in active),
        "readyReplicas": sum(map(podhealth.is_ready, active)),
        "availableReplicas": sum(podhealth.is_available(pod, seconds, observed.now) for pod in active),
        "conditions": failures if missing_pods(replicaset, observed.pods) else [],
    }
    return {
        "replicas": len(active),
        "terminatingReplicas": sum(meta.is_deleting(pod) and not podstate.has_ended(pod) for pod in observed.pods),
        "observedGeneration": meta.generation(replicaset),
    } | {field: value for field, value in optional.items() if value}


def _changes(observed: ObservedReplicaSet) -> list[Create | Delete]:
    count = missing_pods(observed.replicaset, observed.pods)
    if count > 0:
        names = zip(range(min(count, AT_ONCE)), observed.names, strict=False)
        return [_create(observed.replicaset, name) for _, name in names]
    if count == 0:
        return []
    active = [pod for pod in observed.pods if is_active(pod)]
    related = [pod for pod in observed.related if is_active(pod)]
    leaving = rank_for_deletion(active, related, observed.now)[: min(-count, AT_ONCE)]
    return [_delete(observed.replicaset, pod) for pod in leaving]


def _create(replicaset: JSONObject, name: str) -> Create:
    success = eventobjects.normal_event(replicaset, "SuccessfulCreate", "Create", f"Created pod: {name}")
    failure = eventobjects.warning_event(replicaset, "FailedCreate", "Create", "Error creating: {error}")
    pod = build_pod(replicaset, name)
    return Create(resource=PODS, object=pod, if_absent=True, on_success=(success,), on_failure=(failure,))


def _delete(replicaset: JSONObject, pod: JSONObject) -> Delete:
    success = eventobjects.normal_event(replicaset, "SuccessfulDelete", "Delete", f"Deleted pod: {meta.name(pod)}")
    failure = eventobjects.warning_event(replicaset, "FailedDelete", "Delete", "Error deleting: {error}")
    return Delete(resource=PODS, key=meta.key(pod), uid=meta.uid(pod), on_success=(success,), on_failure=(failure,))


def _with_failure(observed: ObservedReplicaSet, status: JSONObject, reason: str) -> JSONObject:
    old = meta.find_condition(observed.replicaset, FAILURE)
    since = old["lastTransitionTime"] if old else timestamps.render(observed.now)
    failure = {"type": FAILURE, "status": "True", "reason": reason, "message": "{error}", "lastTransitionTime": since}
    return {"status": status | {"conditions": [failure]}}


DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
COST_LIMIT: Final = 2**31
PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}


def rank_for_deletion(pods: Iterable[JSONObject], related: Iterable[JSONObject], now: datetime) -> Sequence[JSONObject]:
    """Return the pods in deletion order.

    `related` are pods that should run on different nodes.
    """
    crowd = Counter(meta.spec(pod).get("nodeName") or "" for pod in related)

    def state(pod: JSONObject) -> tuple[int, ...]:
        node = meta.spec(pod).get("nodeName") or ""
        phase = PHASES.get(podhealth.pod_phase(pod), 0)
        return (bool(node), phase, meta.is_condition_true(pod, "Ready"), _cost(pod), -crowd[node])

    def compare(first: JSONObject, second: JSONObject) -> int:
        if state(first) != state(second):
            return -1 if state(first) < state(second) else 1
        ready = _compare_ages(_ready_since(first), _ready_since(second), now)
        age = ready if ready is not None else (_restarts(second) - _restarts(first)) or None
        age = age if age is not None else _compare_ages(_creation_time(first), _creation_time(second), now)
        return -1 if (age or 0) < 0 or (not age and meta.uid(first) < meta.uid(second)) else 1

    return sorted(pods, key=cmp_to_key(compare))


def _cost(pod: JSONObject) -> int:
    cost = decimals.integer(meta.annotations(pod).get(DELETION_COST, ""))
    return cost if cost is not None and -COST_LIMIT <= cost < COST_LIMIT else 0


def _ready_since(pod: JSONObject) -> datetime | None:
    condition = meta.find_condition(pod, "Ready")
    since = (condition or {}).get("lastTransitionTime") if meta.is_condition_true(pod, "Ready") else None
    return timestamps.parse(since) if since else None


def _creation_time(pod: JSONObject) -> datetime | None:
    created = meta.metadata(pod).get("creationTimestamp")
    return timestamps.parse(created) if created else None


def _compare_ages(first: datetime | None, second: datetime | None, now: datetime) -> int | None:
    """Return a negative number if `first` is younger, 0 for a similar age, and None for the same time."""
    if first == second:
        return None
    if first is None or second is None:
        return -1 if first is None else 1
    return _age_magnitude(first, now) - _age_magnitude(second, now)


def _age_magnitude(moment: datetime, now: datetime) -> int:
    age = (now - moment).total_seconds() * 1e9
    return -1 if age <= 0 else int(math.log2(age))


def _restarts(pod: JSONObject) -> int:
    return max((entry.get("restartCount", 0) for entry in meta.status(pod).get("containerStatuses") or ()), default=0)
