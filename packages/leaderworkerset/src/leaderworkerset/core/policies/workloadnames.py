"""Computes the same Workload and PodGroup names as the Go controller (N-K8S-3 to N-K8S-5).

A Workload's name ends in a hash of the LeaderWorkerSet's UID. The name of a replica's PodGroup starts with the
Workload's name, and with an incarnation if the group has an index. So a recreated leader never waits for the previous
PodGroup, which exists as long as any of its pods (N-K8S-12).
"""

import hashlib
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.fnv import fnv1a
from kuberuntime.objects.meta import UID, JSONObject
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.core.policies.levels import SchedulingLevel

LONGEST: Final = 253

ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""The characters in random suffixes of Kubernetes names."""

INCARNATION: Final = 5
"""The number of characters that distinguish PodGroups of consecutive leaders with the same name."""


def workload_name(lws: LeaderWorkerSet) -> str:
    """Return the Workload name of a LeaderWorkerSet."""
    return build_workload_name(lws.name, lws.metadata.uid)


def build_workload_name(name: str, uid: UID) -> str:
    """Return the Workload name for this LeaderWorkerSet name and UID.

    >>> build_workload_name("web", UID("11111111-2222-3333-4444-555555555555"))
    'web-68d7549f75'
    """
    suffix = f"-{encode(str(fnv1a(f'(types.UID){uid}'.encode())).encode())}"
    return name[: LONGEST - len(suffix)] + suffix


def encode(data: bytes) -> str:
    """Encode bytes with an alphabet that does not form words."""
    return "".join(ALPHABET[byte % len(ALPHABET)] for byte in data)


def pod_group_prefix(prefix: str, workload: str) -> str:
    """Return the name prefix of a leader's PodGroups. It is the annotation if this matches the Workload name."""
    return prefix if is_incarnated(prefix) and prefix.rpartition(".")[0] == workload else workload


def with_incarnation(workload: str, request: str) -> str:
    """Return the name with an incarnation that is unique to this admission."""
    return f"{workload}.{encode(hashlib.sha256(request.encode()).digest())[:INCARNATION]}"


def is_incarnated(name: str) -> bool:
    """Return whether a Workload name contains an incarnation. LeaderWorkerSet names do not contain dots."""
    incarnation = name.rpartition(".")[2]
    return "." in name and len(incarnation) == INCARNATION and set(incarnation) <= set(ALPHABET)


def group_name(pod: JSONObject, workload: str, level: SchedulingLevel, role: str) -> str:
    """Return the PodGroup name of a pod.

    A missing label is treated as empty. `workload` can contain an incarnation.
    """
    if level is SchedulingLevel.WHOLE:
        return _truncate(workload.rpartition(".")[0] if is_incarnated(workload) else workload, "-lws")
    revision = groupname.revision_key(pod)
    between = f"{role}-" if level is SchedulingLevel.ROLE else ""
    return _truncate(workload, f"-{groupname.group_label(pod)}-{between}{revision}")


def dependent_pod_groups(pod_group: JSONObject) -> tuple[str, ...]:
    """Return the names of PodGroups whose pods require this PodGroup."""
    name, revision = meta.name(pod_group), groupname.revision_key(pod_group)
    if meta.labels(pod_group).get(labels.ROLE) != labels.WORKER:
        return (name,)
    return (name, f"{name.removesuffix(f'{labels.WORKER}-{revision}')}{labels.LEADER}-{revision}")


def linked_pod_group(pod: JSONObject) -> str:
    """Return the Kubernetes PodGroup name in a pod, or an empty string if the pod is not linked."""
    return str((meta.spec(pod).get("schedulingGroup") or {}).get("podGroupName") or "")


def _truncate(workload: str, suffix: str) -> str:
    """Return the joined name. The LeaderWorkerSet name is truncated if necessary."""
    name, dash, identity = workload.rpartition("-")
    kept = f"{dash}{identity}{suffix}"
    return name[: LONGEST - len(kept)] + kept
