"""Force-deletes pods on unresponsive nodes that exceed their termination grace period.

A pod without a kubelet remains Terminating forever and blocks its group, because the leader waits for its workers and
a name can be reused only after its pod is deleted. Input: the pods of a group, the nodes of stuck pods, the time.
Output: deletions with a grace period of 0, or the time of the next check.

A node that does not report may still run its pods. Workers on such a node are released. A leader is not, because two
leaders with the same identity could serve at the same time. A leader is released only if the node is certainly shut
down. This is the case if the node was deleted, or if an administrator added the taint
`node.kubernetes.io/out-of-service`.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.duration import Range
from kuberuntime.objects.field import FieldError, invalid
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from kuberuntime.plan import Action, Delete, Emit
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.capabilities import names
from leaderworkerset.core import decisionevents
from leaderworkerset.core.policies.policy import NOTHING, LiveGroup, Nodes, PolicyDecision

OFF: Final = "off"

GRACES: Final = Range(24)

OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
"""The taint of a node that is confirmed to be shut down."""

RECHECK: Final = timedelta(seconds=30)
"""The interval for checking a stuck pod that cannot be force-deleted at this time. Nodes are not watched.

It is also the maximum time before a pod counts as stuck. If a clock is wrong, that time may seem to be far in the
future.
"""

RELEASED: Final = decisionevents.EventKind("Warning", "LostPod", "Delete")
"""A pod on a lost node was force-deleted."""

WAITING: Final = decisionevents.EventKind("Warning", "LostPod", "Hold")
"""A pod on a lost node blocks its group."""


class StuckGroup(Struct, frozen=True, kw_only=True):
    """A group whose pods are treated as stuck if they exceed their termination grace period by `grace`."""

    lws: JSONObject
    pods: Sequence[JSONObject]
    grace: timedelta
    now: datetime


def errors(lws: LeaderWorkerSet) -> Iterator[FieldError]:
    """Return the error of the annotation. Invalid stored values are ignored."""
    text = lws.metadata.annotations.get(labels.RELEASE_LOST_PODS_AFTER)
    if text is not None and text != OFF and GRACES.parse(text) is None:
        yield invalid(f"metadata.annotations.{labels.RELEASE_LOST_PODS_AFTER}", text, f"must be {GRACES}, or {OFF}")


def force_deletion_delay(group: LiveGroup) -> timedelta | None:
    """Return the delay after which stuck pods are force-deleted, or None if they are not force-deleted."""
    default: timedelta | None = group.facts.get(names.LOST_NODES)
    text = meta.annotations(group.obj).get(labels.RELEASE_LOST_PODS_AFTER)
    if text is None:
        return default
    return None if text == OFF else GRACES.parse(text) or default


def _stuck_group(group: LiveGroup) -> StuckGroup | None:
    grace = force_deletion_delay(group) if group.obj else None
    return None if grace is None else StuckGroup(lws=group.obj, pods=group.objects.pods, grace=grace, now=group.now)


def required_nodes(group: LiveGroup) -> set[str]:
    """Return the names of nodes with stuck pods, if such pods must be force-deleted."""
    stuck = _stuck_group(group)
    return set() if stuck is None else nodes_to_observe(stuck)


def decide(group: LiveGroup) -> PolicyDecision:
    """Force-delete the stuck pods of a group."""
    stuck = _stuck_group(group)
    return NOTHING if stuck is None else force_delete_stuck_pods(stuck, group.nodes)


def nodes_to_observe(stuck: StuckGroup) -> set[str]:
    """Return the names of the nodes that must be observed."""
    return {_node_name(pod) for pod in _terminating_pods(stuck.pods) if _remaining_time(pod, stuck) <= timedelta()}


def force_delete_stuck_pods(stuck: StuckGroup, nodes: Nodes) -> PolicyDecision:
    """Force-delete pods that are stuck on lost nodes."""
    actions: list[Action] = []
    waits: list[timedelta] = []
    for pod in _terminating_pods(stuck.pods):
        left = _remaining_time(pod, stuck)
        if left > timedelta():
            waits.append(min(left, RECHECK))
            continue
        waits.append(RECHECK)
        actions += _force_delete(stuck, pod, nodes.get(_node_name(pod)), is_first=left > -RECHECK)
    return PolicyDecision(actions=tuple(actions), requeue_after=min(waits).total_seconds() if waits else None)


def _force_delete(stuck: StuckGroup, pod: JSONObject, node: JSONObject | None, *, is_first: bool) -> Iterator[Action]:
    state = _lost_reason(node)
    if not state:
        return
    where = f"Pod {meta.name(pod)} is Terminating on node {_node_name(pod)}, which {state}"
    if groupname.is_leader(pod) and not _is_down(node):
        note = f"{where}. A leader is force-deleted only if its node is deleted or has the taint {OUT_OF_SERVICE}"
        if is_first:
            yield Emit(events=(WAITING(stuck.lws, note, pod),))
        return
    index = groupname.group_label(pod)
    note = f"{where}. Force-deleted it to unblock group {index}"
    yield Delete(
        resource=PODS,
        key=meta.key(pod),
        uid=meta.uid(pod),
        grace_period=0,
        on_success=(RELEASED(stuck.lws, note, pod),),
    )


def _terminating_pods(pods: Sequence[JSONObject]) -> Iterator[JSONObject]:
    """Yield the terminating pods on a node that have not been force-deleted."""
    for pod in pods:
        if meta.is_deleting(pod) and _node_name(pod) and meta.metadata(pod).get("deletionGracePeriodSeconds") != 0:
            yield pod


def _remaining_time(pod: JSONObject, stuck: StuckGroup) -> timedelta:
    """Return the remaining termination time of the pod. The deletion timestamp includes its grace period."""
    return timestamps.parse(meta.metadata(pod)["deletionTimestamp"]) + stuck.grace - stuck.now


def _lost_reason(node: JSONObject | None) -> str:
    """Return the reason why a node is considered lost, or an empty string if the node is responsive."""
    if node is None:
        return "does not exist"
    if _is_down(node):
        return f"has the taint {OUT_OF_SERVICE}"
    ready = meta.find_condition(node, "Ready") or {}
    status = ready.get("status") or "Unknown"
    if status == "True":
        return ""
    return f"is not Ready ({', '.join(filter(None, [status, ready.get('reason')]))})"


def _is_down(node: JSONObject | None) -> bool:
    """Return whether the node is confirmed to be shut down."""
    return node is None or any(taint.get("key") == OUT_OF_SERVICE for taint in meta.spec(node).get("taints") or [])


def _node_name(pod: JSONObject) -> str:
    name: str = meta.spec(pod).get("nodeName") or ""
    return name
