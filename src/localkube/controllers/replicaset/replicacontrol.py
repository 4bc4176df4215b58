"""Decides which pods of a ReplicaSet to create and delete, and what its status is.

Mirrors `manageReplicas` and `calculateStatus`. Pods that ended or are being deleted do not count. One plan creates or
deletes `AT_ONCE` pods at most; a failure ends the batch (slow start) and becomes the condition ReplicaFailure, which
stays until the number is right.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS, REPLICA_SETS
from kuberuntime.plan import Action, Create, Delete, Finally, Plan, PutStatus, Together, guarded_patch
from localkube.controllers import eventobjects, podhealth
from localkube.controllers.replicaset import victims

AT_ONCE: Final = 500
FAILURE: Final = "ReplicaFailure"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedReplicaSet:
    """Everything that the decision depends on: the set, its pods, those of its siblings too, names for new pods."""

    replicaset: JSONObject
    pods: Sequence[JSONObject]
    related: Sequence[JSONObject]
    names: Iterable[str]
    now: datetime


def is_active(pod: JSONObject) -> bool:
    """Return whether the pod counts: it neither ended nor is it being deleted."""
    return not podhealth.is_finished(pod) and not meta.is_deleting(pod)


def missing(replicaset: JSONObject, pods: Iterable[JSONObject]) -> int:
    """Return how many pods are missing, a negative number where there are too many."""
    return int(meta.spec(replicaset)["replicas"]) - sum(map(is_active, pods))


def plan(observed: ObservedReplicaSet) -> Plan:
    """Return the next actions of a set."""
    replicaset = observed.replicaset
    status = build_status(observed)
    changes = () if meta.is_deleting(replicaset) else _changes(observed)
    actions: tuple[Action, ...] = ()
    if changes:
        reason = "FailedCreate" if isinstance(changes[0], Create) else "FailedDelete"
        failed = guarded_patch(REPLICA_SETS, replicaset, _with_failure(observed, status, reason), subresource="status")
        together = Together(sequences=tuple((change,) for change in changes))
        actions = (Finally(actions=(together,), after=(), on_failure=(failed,)),)
    if status != {name: value for name, value in meta.status(replicaset).items() if value is not None}:
        version = meta.resource_version(replicaset)
        changed = replicaset | {"status": status}
        actions += (PutStatus(resource=REPLICA_SETS, object=changed, resource_version=version, if_present=True),)
    active = filter(is_active, observed.pods)
    return Plan(actions, podhealth.next_available(active, _min_ready_seconds(replicaset), observed.now))


def build_pod(replicaset: JSONObject, name: str) -> JSONObject:
    """Build a pod of the set's template."""
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
    """Build the whole status; counts of 0 are left out where the API type omits them."""
    replicaset = observed.replicaset
    active = [pod for pod in observed.pods if is_active(pod)]
    wanted = meta.labels(meta.spec(replicaset)["template"]).items()
    seconds = _min_ready_seconds(replicaset)
    failures = [one for one in meta.status(replicaset).get("conditions") or () if one["type"] == FAILURE]
    optional = {
        "fullyLabeledReplicas": sum(wanted <= meta.labels(pod).items() for pod in active),
        "readyReplicas": sum(map(podhealth.is_ready, active)),
        "availableReplicas": sum(podhealth.is_available(pod, seconds, observed.now) for pod in active),
        "conditions": failures if missing(replicaset, observed.pods) else [],
    }
    return {
        "replicas": len(active),
        "terminatingReplicas": sum(meta.is_deleting(pod) and not podhealth.is_finished(pod) for pod in observed.pods),
        "observedGeneration": meta.generation(replicaset),
    } | {field: value for field, value in optional.items() if value}


def _changes(observed: ObservedReplicaSet) -> list[Create | Delete]:
    count = missing(observed.replicaset, observed.pods)
    if count > 0:
        names = zip(range(min(count, AT_ONCE)), observed.names, strict=False)
        return [_create(observed.replicaset, name) for _, name in names]
    if count == 0:
        return []
    active = [pod for pod in observed.pods if is_active(pod)]
    related = [pod for pod in observed.related if is_active(pod)]
    leaving = victims.ranked(active, related, observed.now)[: min(-count, AT_ONCE)]
    return [_delete(observed.replicaset, pod) for pod in leaving]


def _create(replicaset: JSONObject, name: str) -> Create:
    done = eventobjects.normal(replicaset, "SuccessfulCreate", "Create", f"Created pod: {name}")
    failed = eventobjects.warning(replicaset, "FailedCreate", "Create", "Error creating: {error}")
    pod = build_pod(replicaset, name)
    return Create(resource=PODS, object=pod, if_absent=True, on_success=(done,), on_failure=(failed,))


def _delete(replicaset: JSONObject, pod: JSONObject) -> Delete:
    done = eventobjects.normal(replicaset, "SuccessfulDelete", "Delete", f"Deleted pod: {meta.name(pod)}")
    failed = eventobjects.warning(replicaset, "FailedDelete", "Delete", "Error deleting: {error}")
    return Delete(resource=PODS, key=meta.key(pod), uid=meta.uid(pod), on_success=(done,), on_failure=(failed,))


def _with_failure(observed: ObservedReplicaSet, status: JSONObject, reason: str) -> JSONObject:
    old = meta.find_condition(observed.replicaset, FAILURE)
    since = old["lastTransitionTime"] if old else timestamps.render(observed.now)
    failure = {"type": FAILURE, "status": "True", "reason": reason, "message": "{error}", "lastTransitionTime": since}
    return {"status": status | {"conditions": [failure]}}


def _min_ready_seconds(replicaset: JSONObject) -> int:
    return int(meta.spec(replicaset).get("minReadySeconds") or 0)
