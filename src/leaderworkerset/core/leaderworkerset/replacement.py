"""Which outdated leaders to delete now, so that `maxUnavailable` holds on every cluster (docs/adr/0004).

StatefulSet controllers without the feature `MaxUnavailableStatefulSet` (off by default in Kubernetes 1.36) replace one
leader after the other, however many may be unavailable. There this controller deletes outdated leaders itself, as many
as the budget allows; the StatefulSet brings them back from its update revision.

In: the leader StatefulSet as it lives, the groups, the budget and the key of the revision. Out: the groups whose
leaders to delete, the worst first. Bounds, whatever the partition says:

- a group that is available is only touched while more than `replicas - unavailable` are; groups being deleted are not
  available, nor are those that are not ready or between two revisions; surge groups are if they are ready;
- only groups at or above the partition, whose leader is neither of the revision nor of the StatefulSet's update
  revision: what is deleted twice would come back the same;
- only once the StatefulSet controller has observed the very StatefulSet that lives; one that is down brings nothing back.

Where the API server kept `maxUnavailable`, its StatefulSet controller honours it, and nothing is left to do.
"""

from collections.abc import Iterable

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.core.leaderworkerset import statefulsets
from leaderworkerset.core.leaderworkerset.groups import Group
from leaderworkerset.core.leaderworkerset.rollout import Budget


def choose(
    statefulset: JSONObject | None, groups: Iterable[Group], *, limits: Budget, size: int, key: str
) -> list[Group]:
    """Return the groups to replace now."""
    if statefulset is None or not needs_help(statefulset):
        return []
    current = statefulsets.position(statefulset)
    by_index = {one.index: one for one in groups if one.index is not None and not one.is_deleting}
    living = {index: by_index[index] for index in sorted(by_index, reverse=True) if index < current.replicas}
    available = sum(_is_available(one, size) for one in living.values())
    spare = max(available - (limits.replicas - limits.unavailable), 0)
    update = meta.status(statefulset)["updateRevision"]
    rolled = [one for index, one in living.items() if index >= current.partition]
    outdated = [one for one in rolled if one.revision != key and one.statefulset_revision != update]
    broken = [one for one in outdated if not _is_available(one, size)]
    return broken + [one for one in outdated if _is_available(one, size)][:spare]


def needs_help(statefulset: JSONObject) -> bool:
    """Return whether a StatefulSet controller is at work that does not know `maxUnavailable`."""
    status = meta.status(statefulset)
    rolling = (meta.spec(statefulset).get("updateStrategy") or {}).get("rollingUpdate") or {}
    has_looked = status.get("observedGeneration") == meta.generation(statefulset) and bool(status.get("updateRevision"))
    return has_looked and "maxUnavailable" not in rolling


def _is_available(group: Group, size: int) -> bool:
    """Return whether the group is ready, and not by the workers of the leader before."""
    is_of_one_revision = group.workers is None or group.workers.revision == group.revision
    return group.is_ready(size) and (size == 1 or is_of_one_revision)
