"""Finds in-place updates whose pods do not have the CPU and memory of the new revision. Pure."""

from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.texts.masking import mask_message
from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.decisions.rolloutsteps import RESIZE_PENDING, is_resize_rejected, is_resize_settled
from lwsctl.diagnosis import ranks
from lwsctl.diagnosis.finding import Finding, cause
from lwsctl.diagnosis.observed import Observed
from lwsctl.model.groups import Rank

CONDITIONS: Final = (RESIZE_PENDING, "PodResizeInProgress")


@cause(
    code="LWS-E097",
    title="a pod cannot be resized",
    meaning="An in-place resize of CPU and memory was rejected or failed, or the node does not have enough resources (Deferred or Infeasible).",
    remedy="Free resources on the node, set different values, or permit the manager to recreate the groups.",
)
def find_failed_resize(observed: Observed) -> Finding | None:
    """Find pods in an in-place update whose resize is rejected, deferred or failed."""
    members = observed.view.ranks
    failures = [
        (rank, message)
        for rank in members
        if (message := _resize_message(rank.object or {}) or _rejection_message(observed, rank))
    ]
    if not failures:
        return None
    rank, message = failures[0]
    return Finding(
        subject=ranks.pod_subject(rank),
        sentence=f"pod {rank.pod} was not resized to the CPU and memory of the new revision{ranks.others_suffix(len(failures))}",
        evidence=(f"{rank.pod}: {ranks.quote_message(message)}",),
        steps=(
            f"{observed.commands.lws} nodes",
            f"apply different values or the previous values to {observed.view.name}; the pods are not recreated",
            f"to recreate groups for values that no node can provide, set annotation {labels.IN_PLACE} to IfPossible",
        ),
    )


def _resize_message(pod: JSONObject) -> str:
    """Return the kubelet's message about an incomplete resize, or an empty string if the resize continues."""
    if is_resize_settled(pod):
        return ""
    for kind in CONDITIONS:
        condition = meta.find_condition(pod, kind) or {}
        if condition.get("status") == "True" and condition.get("reason"):
            return f"{kind}: {condition['reason']}: {mask_message(condition.get('message') or '')}"
    return ""


def _rejection_message(observed: Observed, leader: Rank) -> str:
    """Return the API server's message about the rejected change to a group, if its leader has the annotation."""
    if not is_resize_rejected(leader.object or {}):
        return ""
    warnings = observed.warnings.about(observed.view.namespace, leaderworkerset.KIND, observed.view.name)
    words = [
        warning.message
        for warning in sorted(warnings, key=lambda warning: warning.last)
        if warning.message.startswith("Cannot resize pod")
    ]
    return words[-1] if words else "the resize was rejected"
