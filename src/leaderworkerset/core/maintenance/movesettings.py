"""Settings of moves: whether the groups of a LeaderWorkerSet are moved, and off which nodes.

In: the setting of the manager, and the annotation of one LeaderWorkerSet, which overrides it. An invalid annotation that
was stored without the webhook counts as absent.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.field import FieldError, invalid
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.placement import CORDONED, REPELLING, read_tolerations
from leaderworkerset.api import labels

ANSWERS: Final = {"true": True, "false": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveSettings:
    """Whether groups without annotation are moved, and the key of a taint that means maintenance, empty for none."""

    moves: bool = False
    taint: str = ""


def is_on(settings: MoveSettings, annotations: Mapping[str, str]) -> bool:
    """Return whether the groups of a LeaderWorkerSet with these annotations are moved."""
    return ANSWERS.get(annotations.get(labels.MOVE_GROUPS, ""), settings.moves)


def errors(new: Mapping[str, str], stored: Mapping[str, str]) -> Iterator[FieldError]:
    """Return the error of an annotation that is new or changed; a stored one does not block other edits."""
    text = new.get(labels.MOVE_GROUPS)
    if text is not None and text not in {*ANSWERS, stored.get(labels.MOVE_GROUPS)}:
        yield invalid(f"metadata.annotations.{labels.MOVE_GROUPS}", text, "must be true or false")


def must_leave(settings: MoveSettings, node: JSONObject, pod: JSONObject) -> bool:
    """Return whether a pod is to be moved off a node: cordoned, or tainted NoExecute or with the taint of maintenance.

    Not a pod that tolerates that: its successor might come back to the same node, and be moved again for ever.
    """
    taints = [taint for taint in meta.spec(node).get("taints") or [] if _is_maintenance(settings, taint)]
    if meta.spec(node).get("unschedulable"):
        taints.append(CORDONED)
    tolerations = read_tolerations(meta.spec(pod))
    return any(not any(one.tolerates(taint) for one in tolerations) for taint in taints)


def _is_maintenance(settings: MoveSettings, taint: JSONObject) -> bool:
    is_named = taint.get("key") == settings.taint and taint.get("effect") in REPELLING
    return is_named or taint.get("effect") == "NoExecute"
