"""Builds the status of a StatefulSet: pod counts, revision names, and the completion of a rollout.

Mirrors `updateStatus`, `completeRollingUpdate` and `inconsistentStatus` of kube-controller-manager.
"""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from localkube.controllers import podhealth
from localkube.controllers.statefulset import identity


class Counts(Struct, frozen=True, kw_only=True):
    """The number of pods in each state, and the names of both revisions."""

    replicas: int
    ready: int
    available: int
    current: int
    updated: int
    current_revision: str
    update_revision: str


def count(
    statefulset: JSONObject, pods: Sequence[JSONObject], revisions: tuple[JSONObject, JSONObject], now: datetime
) -> Counts:
    """Count the pods of a StatefulSet. `revisions` are the current and the update revision."""
    seconds = podhealth.min_ready_seconds(statefulset)
    current, update = (meta.name(revision) for revision in revisions)
    created = [
        pod for pod in pods if podhealth.pod_phase(pod)
    ]  # the API server sets the phase of each pod that it stores
    living = [identity.pod_revision(pod) for pod in created if not meta.is_deleting(pod)]
    return Counts(
        replicas=len(created),
        ready=sum(map(podhealth.is_ready, pods)),
        available=sum(podhealth.is_available(pod, seconds, now) for pod in pods),
        current=living.count(current),
        updated=living.count(update),
        current_revision=current,
        update_revision=update,
    )


def build(statefulset: JSONObject, counts: Counts, collisions: int) -> JSONObject:
    """Build the whole status. Counts of 0 are omitted if the API type omits them."""
    current, current_revision = counts.current, counts.current_revision
    if _is_complete(statefulset, counts):
        current, current_revision = counts.updated, counts.update_revision
    optional = {"readyReplicas": counts.ready, "currentReplicas": current, "updatedReplicas": counts.updated}
    return {
        "observedGeneration": meta.generation(statefulset),
        "replicas": counts.replicas,
        "availableReplicas": counts.available,
        "currentRevision": current_revision,
        "updateRevision": counts.update_revision,
        "collisionCount": collisions,
    } | {field: number for field, number in optional.items() if number}


def _is_complete(statefulset: JSONObject, counts: Counts) -> bool:
    strategy = meta.spec(statefulset).get("updateStrategy") or {}
    desired = identity.desired_replicas(statefulset)
    rolling = strategy.get("type", "RollingUpdate") == "RollingUpdate"
    return rolling and desired == counts.updated == counts.ready == counts.replicas
