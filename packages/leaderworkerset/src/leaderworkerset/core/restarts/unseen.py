"""Workers that went while no manager ran, recognized by the status that the last one left (docs/adr/0014-workers-lost-unseen.md).

While a manager runs, `Available` becomes False as soon as a worker goes, and True again at a later time. So where it has
been True since a time, all groups were whole then, and no worker has been replaced since. A worker that is missing when
a manager first observes the group, or was created clearly later, replaces one that nobody saw go.

In: a LeaderWorkerSet as a manager finds it, and a group as it first observes it. Out: the workers that went, in their
last state, as if their deletion had been seen.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final

from kuberuntime.objects import decimals, meta, timestamps
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.conditions import AVAILABLE

SKEW: Final = timedelta(minutes=1)
"""How far the clock of a manager, which writes conditions, may be behind the API server's, which dates pods."""

REASON: Final = "no manager ran"


def whole_since(lws: JSONObject) -> str:
    """Return since when all groups have been ready by the status; empty if they are not."""
    status, available = meta.status(lws), meta.find_condition(lws, AVAILABLE.type) or {}
    if available.get("status") != "True" or status.get("readyReplicas") != status.get("replicas"):
        return ""
    return str(available.get("lastTransitionTime") or "")


def may_be_new(lws: JSONObject, leader: JSONObject) -> bool:
    """Return whether a group is beyond the wanted ones: extra groups come while a set is available, and may not have been whole.

    The number of leaders in the status may be older than they are.
    """
    index = None if groupname.is_hash(leader) else decimals.natural(groupname.label(leader))
    return index is not None and index >= int(meta.spec(lws).get("replicas", 1))


def lost(whole: str, statefulset: JSONObject, pods: Iterable[JSONObject]) -> Sequence[JSONObject]:
    """Return the workers of a group that went after it was `whole`; none if its StatefulSet is not older."""
    if not whole or meta.created(statefulset) >= whole:
        return ()
    latest = timestamps.render(timestamps.parse(whole) + SKEW)
    kept = {meta.name(pod) for pod in pods if meta.created(pod) <= latest}
    ordinals = range(1, (meta.spec(statefulset).get("replicas") or 0) + 1)
    names = [f"{meta.name(statefulset)}-{ordinal}" for ordinal in ordinals]
    return [_last_state(name, statefulset, whole) for name in names if name not in kept]


def _last_state(name: str, statefulset: JSONObject, whole: str) -> JSONObject:
    """Return a worker of which is known that it ran, and was deleted after the group was whole."""
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
