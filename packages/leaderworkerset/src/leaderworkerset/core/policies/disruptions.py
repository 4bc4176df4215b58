"""Distinguishes disruptions by users or components from failures of containers or kubelets (docs/adr/0003).

A pod that is deleted, evicted, preempted or lost with its node did not fail. Its group is recreated like any failed
group, but the recreation is neither delayed nor counted. A failure is one of the following: a container restarted, a
container terminated before the deletion was requested, or the kubelet rejected the pod or evicted it for its resource
usage.

Input: a pod that failed by R-POD-4, in its last state. Output: its origin.
"""

from collections.abc import Sequence
from typing import Final

from kuberuntime.objects import disruptiontarget, meta, podstate
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.api.recreationrecord import Origin
from leaderworkerset.core.policies.failures import RestartExemption, has_restarted

FOR_OTHERS: Final = frozenset({"Preempting", "Terminated", "NodeShutdown", "Shutdown", "NodeLost"})
"""The reasons of pods that a kubelet terminates for a more important pod or for a node shutdown."""

OUT_OF_MEMORY: Final = "OOMKilled"


def failure_origin(
    pod: JSONObject, lws: LeaderWorkerSet | None = None, excuses: Sequence[RestartExemption] = ()
) -> Origin:
    """Return the origin of a pod failure. It is a container or kubelet, a disruption, or an unexplained deletion."""
    is_explained = bool(disruptiontarget.disruption_reason(pod))
    if has_restarted(pod, lws, excuses) or _has_ended(pod, is_explained=is_explained):
        return Origin.PROGRAM
    status = meta.status(pod)
    if status.get("phase") == "Failed" and (reason := status.get("reason")):
        return Origin.DISRUPTION if reason in FOR_OTHERS else Origin.PROGRAM
    return Origin.DISRUPTION if is_explained else Origin.DELETION


def _has_ended(pod: JSONObject, *, is_explained: bool) -> bool:
    """Return whether a container failed, or all containers terminated, before the deletion request.

    The clock of the node may be behind, so that termination by a signal does not count for a disrupted pod.
    """
    statuses = podstate.container_statuses(pod)
    own = [
        end
        for status in statuses
        if (end := (status.get("state") or {}).get("terminated"))
        and not podstate.was_ended_by_deletion(pod, end)
        and not (is_explained and end.get("exitCode") in podstate.STOPPED and end.get("reason") != OUT_OF_MEMORY)
    ]
    is_over = 0 < len(statuses) == len(own)
    return is_over or any(map(podstate.is_failure, own))
