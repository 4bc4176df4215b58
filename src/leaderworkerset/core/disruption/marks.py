"""Marks on the pods of groups that start: autoscalers leave them alone until the group is whole.

In: the pods of a LeaderWorkerSet, and which groups are whole. Out: patches of annotations. Only marks of our own are
removed: a pod whose template has one of the annotations is never changed. A group that does not become whole in an hour
is not protected any longer, since it may never become so.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Final

from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from kuberuntime.plan import Patch
from leaderworkerset.api import groupname, labels
from leaderworkerset.core.disruption.disruptionsettings import STARTING

LONGEST: Final = timedelta(hours=1)

FOREIGN: Final = {labels.SAFE_TO_EVICT: "false", labels.KARPENTER_DO_NOT_DISRUPT: "true"}
"""What cluster autoscaler and Karpenter respect."""


def changes(
    obj: JSONObject, pods: Sequence[JSONObject], whole: Collection[str], now: datetime
) -> tuple[Sequence[Patch], float | None]:
    """Return the patches that are due, and in how many seconds the first mark is too old, None without marks."""
    is_wanted = meta.annotations(obj).get(labels.DO_NOT_DISRUPT) == STARTING
    patches: list[Patch] = []
    ends: list[float] = []
    for pod in pods:
        left = (_created(pod, now) + LONGEST - now).total_seconds()
        starts = is_wanted and groupname.label(pod) not in whole and left > 0 and not meta.is_deleting(pod)
        found = meta.annotations(pod)
        if starts and not FOREIGN.keys() & found.keys():
            patches.append(_patch(pod, {**FOREIGN, labels.MARKED_STARTING: "true"}))
        elif not starts and labels.MARKED_STARTING in found and not meta.is_deleting(pod):
            patches.append(_patch(pod, dict.fromkeys((*FOREIGN, labels.MARKED_STARTING))))
        if starts:
            ends.append(left)
    return patches, min(ends, default=None)


def _created(pod: JSONObject, now: datetime) -> datetime:
    text = meta.created(pod)
    return timestamps.parse(text) if text else now


def _patch(pod: JSONObject, annotations: JSONObject) -> Patch:
    patch = {"metadata": {"uid": meta.uid(pod), "annotations": annotations}}
    return Patch(resource=PODS, key=meta.key(pod), patch=patch, if_present=True)
