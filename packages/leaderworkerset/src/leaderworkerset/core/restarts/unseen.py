"""Workers that were deleted while no manager ran, found from the last status (docs/adr/0014-workers-lost-unseen.md).

While a manager runs, `Available` becomes False as soon as a worker is deleted, and True again at a later time. So at
the last transition to True all groups were whole, and no worker has been replaced since. If a worker is missing when a
manager first observes the group, or was created clearly later than that transition, its predecessor was deleted unseen.

In: a LeaderWorkerSet and a group, as a manager first observes them. Out: the deleted workers, in their last state, as
if their deletion had been observed.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final

from kuberuntime.objects import decimals, meta, timestamps
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.conditions import AVAILABLE

SKEW: Final = timedelta(minutes=1)
"""The maximum delay of a manager's clock, which dates conditions, behind the API server's clock, which dates pods."""

REASON: Final = "no manager ran"


def whole_since(lws: JSONObject) -> str:
    """Return since when all groups have been ready according to the status; empty if they are not ready."""
    status, available = meta.status(lws), meta.find_condition(lws, AVAILABLE.type) or {}
    if available.get("status") != "True" or status.get("readyReplicas") != status.get("replicas"):
        return ""
    return str(available.get("lastTransitionTime") or "")


def may_be_new(lws: JSONObject, leader: JSONObject) -> bool:
    """Return whether the index of a group is not below the desired number of groups.

    Such a surge group is created while the set is available, and may not have been whole. The status may not count its
    leader yet.
    """
    index = None if groupname.is_hash(leader) else decimals.natural(groupname.label(leader))
    return index is not None and index >= int(meta.spec(lws).get("replicas", 1))


def lost(whole: str, statefulset: JSONObject, pods: Iterable[JSONObject]) -> Sequence[JSONObject]:
    """Return the workers of a group that were deleted after the time `whole`; none if its StatefulSet is not older."""
    if not whole or meta.created(statefulset) >= whole:
        return ()
    latest = timestamps.render(timestamps.parse(whole) + SKEW)
    kept = {meta.name(pod) for pod in pods if meta.created(pod) <= latest}
    ordinals = range(1, (meta.spec(statefulset).get("replicas") or 0) + 1)
    names = [f"{meta.name(statefulset)}-{ordinal}" for ordinal in ordinals]
    return [_last_state(name, statefulset, whole) for name in names if name not in kept]


def _last_state(name: str, statefulset: JSONObject, whole: str) -> JSONObject:
    """Return the last state of a worker that ran, and was deleted after the group was whole."""
    revision = groupname.revision(statefulset)
    return {
        "metadata": {
            "name": name,
            "namespace": meta.namespace(statefulset),
            "labels": {labels.TEMPLATE_REVISION_HASH: revision} if revision else {},
            "deletionTimestamp": whole,
            "ownerReferences": [meta.controller_reference(statefulset)],
        },
        "status": {"phase": "Running", "reason": REASON},
    }
