"""Admission of pods: identity, placement and environment of every pod of a group (R-ADM-1 to R-ADM-16).

In: a pod that is about to be created. Out: the pod as it shall be stored, or `Denied`. Nothing is looked up: whatever
is needed stands on the pod, put there by the templates of the leader and worker StatefulSets.
"""

from kuberuntime.objects import meta, ordinals
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.api.leaderworkerset import SubdomainPolicy
from leaderworkerset.core.admission import accelerators, environment, subgroups
from leaderworkerset.core.admission.affinity import with_exclusive_terms
from leaderworkerset.core.admission.denial import DeniedError
from leaderworkerset.core.admission.edits import with_labels, with_spec
from leaderworkerset.core.admission.numbers import read_annotation


def admit_pod(pod: JSONObject) -> JSONObject:
    """Return the pod of a LeaderWorkerSet with everything added that makes it one; other pods come back untouched."""
    if labels.NAME not in meta.labels(pod):
        return pod
    if labels.SIZE not in meta.annotations(pod):
        raise DeniedError(f"size annotation is unexpectedly missing for pod {meta.name(pod)}")
    size = read_annotation(pod, labels.SIZE)
    is_leader = meta.labels(pod).get(labels.WORKER_INDEX) == labels.LEADER_WORKER_INDEX
    placed = _admit_leader(pod) if is_leader else _admit_worker(pod, size)
    return environment.inject(accelerators.inject(placed, size=size, is_leader=is_leader))


def _admit_leader(pod: JSONObject) -> JSONObject:
    """Give a leader its group, its subdomain and its place (R-ADM-4 to R-ADM-9)."""
    name, own, annotations = meta.name(pod), meta.labels(pod), meta.annotations(pod)
    group_index = own[labels.GROUP_INDEX] if labels.GROUP_INDEX in own else str(_ordinal(pod))
    group_key = own.get(labels.GROUP_KEY, subgroups.group_hash(meta.namespace(pod), name))
    admitted = with_labels(pod, {labels.GROUP_INDEX: group_index, labels.GROUP_KEY: group_key})
    if annotations.get(labels.SUBDOMAIN_POLICY) == SubdomainPolicy.UNIQUE_PER_REPLICA:
        admitted = with_spec(admitted, {"subdomain": name})
    topology_key = annotations.get(labels.EXCLUSIVE_TOPOLOGY)
    if topology_key is not None:
        admitted = with_exclusive_terms(admitted, key=labels.GROUP_KEY, value=group_key, topology_key=topology_key)
    return subgroups.join_as_leader(admitted)


def _admit_worker(pod: JSONObject, size: int) -> JSONObject:
    """Give a worker its index and its subgroup; the group comes from its StatefulSet's template (R-ADM-10, 11)."""
    worker_index = _ordinal(pod)
    admitted = with_labels(pod, {labels.WORKER_INDEX: str(worker_index)})
    return subgroups.join_as_worker(admitted, size=size, worker_index=worker_index)


def _ordinal(pod: JSONObject) -> int:
    parts = ordinals.split(meta.name(pod))
    if parts is None:
        raise DeniedError(f"parsing pod ordinal for pod {meta.name(pod)}")
    return parts.number
