"""Sets the identity, placement and environment of pods in a group at admission (R-ADM-1 to R-ADM-16).

Input: a pod that is about to be created. Output: the pod to store, or `DeniedError`. No other object is read, because
the templates of the leader and worker StatefulSets contain all required values.
"""

from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import groupname, labels
from leaderworkerset.core.extensions import UPSTREAM, Extensions
from leaderworkerset.core.policies import (
    accelerators,
    environment,
    exclusive,
    identity,
    replacement,
    subdomain,
    subgroups,
)
from leaderworkerset.core.policies.gang import NO_GANG, Gang
from leaderworkerset.core.policies.numbers import read_annotation
from leaderworkerset.core.policies.policy import DeniedError, Member, Policy

ADMITTING: Final[tuple[Policy, ...]] = (
    identity.POLICY,
    subdomain.POLICY,
    exclusive.POLICY,
    subgroups.POLICY,
    accelerators.POLICY,
    environment.POLICY,
    replacement.POLICY,
)
"""The policies in order. Each policy modifies the pod that the previous policy returns (R-ADM-4 to R-ADM-16)."""


def admit_pod(
    pod: JSONObject, gang: Gang = NO_GANG, request: str = "", extensions: Extensions = UPSTREAM
) -> JSONObject:
    """Return the pod as a member of its group. Pods without a LeaderWorkerSet are unchanged.

    `request` is unique to this admission. A second admission of the same pod does not change it (N-AT-3).
    """
    if labels.NAME not in meta.labels(pod):
        return pod
    if labels.SIZE not in meta.annotations(pod):
        raise DeniedError(f"size annotation is unexpectedly missing for pod {meta.name(pod)}")
    size = read_annotation(pod, labels.SIZE)
    is_leader = groupname.is_leader(pod)
    worker_index = 0 if is_leader else identity.ordinal(pod)
    member = Member(size=size, worker_index=worker_index, is_leader=is_leader, request=request)
    for policy in (*ADMITTING, extensions.groups.policy):
        pod = policy.admit(pod, member)
    return gang.mark(pod, request)
