"""Which outdated leaders to delete because the StatefulSet controller would not do it, or not yet (docs/adr/0004).

The first case: a group is of no revision that the StatefulSet has, because an update was reverted or replaced before the
group was ready. The rollout counts it as unavailable and waits for it, but it may never become ready. If the
StatefulSet's partition keeps it and the user's does not, its leader is deleted here, on every cluster. The StatefulSet
recreates it from a revision that it has.

The second case: `maxUnavailable` shall hold on every cluster. StatefulSet controllers without the feature
`MaxUnavailableStatefulSet` (off by default in Kubernetes 1.36, on in 1.37) replace one leader after the other, however
many may be unavailable. There this controller deletes outdated leaders itself, as many as the budget allows; the
StatefulSet recreates them from its update revision.

In: the live leader StatefulSet, the fold of the groups, the budget and the key of the revision. Out: the indexes of the
groups whose leaders to delete, the worst first. A decision visits no group that it does not choose. Bounds:

- an available group is only replaced while more than `replicas - unavailable` are available; groups that are deleted,
  not ready or between two revisions are not available; surge groups are, if they are ready;
- at or above the StatefulSet's partition, only groups whose leader is neither of the revision nor of the StatefulSet's
  update revision;
- below that partition, only groups that are not available and not of its current revision either: others would be
  recreated unchanged;
- groups that the user's partition keeps are not replaced, available or not, as long as the StatefulSet keeps them, too;
- only after the StatefulSet controller has observed the current StatefulSet: one that is down recreates nothing.

If the API server kept `maxUnavailable`, its StatefulSet controller follows it, and rolls all groups from the partition on.
"""

from itertools import islice

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.core.leaderworkerset import statefulsets
from leaderworkerset.core.leaderworkerset.fold import Folded, below, highest
from leaderworkerset.core.leaderworkerset.rollingupdate import Budget


def choose(statefulset: JSONObject | None, folded: Folded, *, limits: Budget, size: int, key: str) -> list[int]:
    """Return the indexes of the groups to replace now."""
    if statefulset is None or not _has_looked(statefulset):
        return []
    left_behind = abandoned(statefulset, folded, limits=limits, size=size, key=key)
    if not needs_help(statefulset):
        return [*highest(left_behind)]
    partition = statefulsets.position(statefulset).partition
    available = _living(statefulset, folded) & folded.available(size)
    outdated = _outdated(statefulset, folded, key)
    rolled = outdated & ~below(outdated, partition)
    spare = max(available.bit_count() - (limits.replicas - limits.unavailable), 0)
    return [*highest(rolled & ~available | left_behind), *islice(highest(rolled & available), spare)]


def abandoned(statefulset: JSONObject | None, folded: Folded, *, limits: Budget, size: int, key: str) -> int:
    """Return the groups that no revision of the StatefulSet would repair, and that its partition keeps."""
    if statefulset is None or not _has_looked(statefulset):
        return 0
    held = below(_outdated(statefulset, folded, key), statefulsets.position(statefulset).partition)
    lost = held & ~folded.available(size) & ~folded.gated & ~_made_of(statefulset, folded, "currentRevision")
    return lost & ~below(lost, limits.partition)


def needs_help(statefulset: JSONObject) -> bool:
    """Return whether the StatefulSet controller does not know `maxUnavailable`."""
    rolling = (meta.spec(statefulset).get("updateStrategy") or {}).get("rollingUpdate") or {}
    return _has_looked(statefulset) and "maxUnavailable" not in rolling


def _living(statefulset: JSONObject, folded: Folded) -> int:
    """Return the groups that the StatefulSet has, and keeps."""
    return below(folded.members & ~folded.deleting, statefulsets.position(statefulset).replicas)


def _outdated(statefulset: JSONObject, folded: Folded, key: str) -> int:
    """Return the groups whose leaders are neither of the revision nor of the StatefulSet's update revision."""
    living = _living(statefulset, folded)
    return living & ~folded.leaders.get(key, 0) & ~_made_of(statefulset, folded, "updateRevision")


def _has_looked(statefulset: JSONObject) -> bool:
    """Return whether the StatefulSet controller has observed the StatefulSet as it is."""
    return meta.is_observed(statefulset) and bool(meta.status(statefulset).get("updateRevision"))


def _made_of(statefulset: JSONObject, folded: Folded, which: str) -> int:
    """Return the groups whose leaders were created from this revision of the StatefulSet."""
    return folded.statefulset_revisions.get(meta.status(statefulset).get(which) or "", 0)
