"""Selects gated groups to start. If all pods of a group fit, their gates are removed.

Input: nodes, the requests of their pods, the pods without a node, and the groups with a gated pod. Output: a plan
that removes the gates of groups that fit. The order of groups is: groups that have already started (one of their pods
was recreated), higher priority, older leader. A group that does not fit does not delay others.

The result is best effort: other pods may take the space before the pods are bound (limits: `fit.py`).
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final

from msgspec import Struct

from kuberuntime.objects import meta
from kuberuntime.objects.field import FieldError
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from kuberuntime.plan import Patch, Plan, concurrently, identified_patch
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.core.gang import fit
from leaderworkerset.core.gang.fit import Amounts
from leaderworkerset.core.gang.provider import Provider, deadlock_errors
from leaderworkerset.core.policies.podedits import with_spec

GATE: Final[JSONObject] = {"name": labels.GANG_GATE}


class ObservedCluster(Struct, frozen=True, kw_only=True):
    """The observed nodes and pods.

    `used` maps the name of a node to the sums of the requests of its pods. `unbound` are pods without a node. `members`
    are all pods of groups with a gated pod.
    """

    nodes: Sequence[JSONObject]
    used: Mapping[str, Amounts]
    unbound: Sequence[JSONObject]
    members: Sequence[JSONObject]


class _Group(Struct, frozen=True):
    """A complete waiting group with its leader and the pods that have the gate."""

    leader: JSONObject
    gated: Sequence[JSONObject]
    size: int

    def sort_key(self) -> tuple[bool, int, str, str]:
        """Return a sort key for the group."""
        priority = int(meta.spec(self.leader).get("priority") or 0)
        return len(self.gated) == self.size, -priority, meta.creation_timestamp(self.leader), str(meta.key(self.leader))


def reconcile(observed: ObservedCluster) -> Plan:
    """Remove the gates of all groups that fit in addition to the unbound pods."""
    waiting = _waiting_groups(observed.members)
    if not waiting:
        return Plan()
    space = fit.free_space(observed.nodes, observed.used)
    for pod in observed.unbound:
        if not meta.spec(pod).get("schedulingGates"):
            space.place({fit.read_need(pod): 1})
    starting = [group for group in sorted(waiting, key=_Group.sort_key) if space.place(fit.count_needs(group.gated))]
    return Plan(concurrently(opening for group in starting for opening in concurrently(map(_remove_gate, group.gated))))


def is_gated(pod: JSONObject) -> bool:
    """Return whether the pod has the built-in gate."""
    return GATE in (meta.spec(pod).get("schedulingGates") or [])


def group_name(pod: JSONObject) -> str:
    """Return the group name of the pod, or an empty string for other pods. The name is unique in its namespace."""
    return meta.annotations(pod).get(labels.GANG_GROUP, "")


def _waiting_groups(members: Sequence[JSONObject]) -> list[_Group]:
    def group(pod: JSONObject) -> tuple[str, str]:
        return meta.namespace(pod), group_name(pod)

    groups = []
    alive = (pod for pod in members if not meta.is_deleting(pod))
    for _, pods in groupby(sorted(alive, key=group), key=group):
        complete = _complete_group(list(pods))
        if complete is not None:
            groups.append(complete)
    return groups


def _complete_group(pods: Sequence[JSONObject]) -> _Group | None:
    """Return the group of these pods, or None if pods are missing or all pods have other gates."""
    leader = next(filter(groupname.is_leader, pods), None)
    gated = [pod for pod in pods if is_gated(pod)]
    if leader is None or not gated or meta.annotations(leader).get(labels.SIZE) != str(len(pods)):
        return None
    others = any(len(meta.spec(pod)["schedulingGates"]) > 1 for pod in gated)
    return None if others else _Group(leader, gated, len(pods))


def _remove_gate(pod: JSONObject) -> Patch:
    """Remove the only gate of a pod, unless the pod was deleted or replaced."""
    return identified_patch(PODS, pod, {"spec": {"schedulingGates": None}}, if_present=True)


BUILT_IN_NAME: Final = "built-in"
ALONE: Final = "1"
"""The size of groups that do not require a gate."""


def _errors(lws: LeaderWorkerSet) -> Sequence[FieldError]:
    """Return the errors for groups whose workers are not created until their leader is running."""
    return deadlock_errors(lws, BUILT_IN_NAME)


def _link(pod: JSONObject, _group: str) -> JSONObject:
    """Return the pod with the built-in gate in addition to other gates."""
    if meta.annotations(pod).get(labels.SIZE) == ALONE or is_gated(pod):
        return pod
    return with_spec(pod, {"schedulingGates": [*(meta.spec(pod).get("schedulingGates") or []), GATE]})


BUILT_IN: Final = Provider(
    name=BUILT_IN_NAME, schedules=lambda _pod: True, has_pod_group=lambda _pod: False, link=_link, errors=_errors
)
"""The built-in gate, which works with any scheduler and does not require group objects."""
