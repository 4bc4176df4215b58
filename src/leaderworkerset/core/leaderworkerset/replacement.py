"""Which outdated leaders to delete now, so that `maxUnavailable` holds on every cluster (docs/adr/0004).

StatefulSet controllers without the feature `MaxUnavailableStatefulSet` (off by default in Kubernetes 1.36) replace one
leader after the other, however many may be unavailable. There this controller deletes outdated leaders itself, as many
as the budget allows; the StatefulSet brings them back from its update revision.

In: the leader StatefulSet as it lives, the fold of the groups, the budget and the key of the revision. Out: the indexes
of the groups whose leaders to delete, the worst first. A decision visits no group that it does not choose. Bounds, whatever the partition says:

- a group that is available is only touched while more than `replicas - unavailable` are; groups being deleted are not
  available, nor are those that are not ready or between two revisions; surge groups are if they are ready;
- only groups at or above the partition, whose leader is neither of the revision nor of the StatefulSet's update
  revision: what is deleted twice would come back the same;
- only once the StatefulSet controller has observed the very StatefulSet that lives; one that is down brings nothing back.

Where the API server kept `maxUnavailable`, its StatefulSet controller honours it, and nothing is left to do.
"""

from itertools import islice

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.core.leaderworkerset import statefulsets
from leaderworkerset.core.leaderworkerset.fold import Folded, below, highest
from leaderworkerset.core.leaderworkerset.rollout import Budget


def choose(statefulset: JSONObject | None, folded: Folded, *, limits: Budget, size: int, key: str) -> list[int]:
    """Return the indexes of the groups to replace now."""
    if statefulset is None or not needs_help(statefulset):
        return []
    current = statefulsets.position(statefulset)
    living = below(folded.members & ~folded.deleting, current.replicas)
    available = living & folded.available(size)
    spare = max(available.bit_count() - (limits.replicas - limits.unavailable), 0)
    made_of_update = folded.statefulset_revisions.get(meta.status(statefulset)["updateRevision"], 0)
    rolled = living & ~below(living, current.partition)
    outdated = rolled & ~folded.leaders.get(key, 0) & ~made_of_update
    return [*highest(outdated & ~available), *islice(highest(outdated & available), spare)]


def needs_help(statefulset: JSONObject) -> bool:
    """Return whether a StatefulSet controller is at work that does not know `maxUnavailable`."""
    status = meta.status(statefulset)
    rolling = (meta.spec(statefulset).get("updateStrategy") or {}).get("rollingUpdate") or {}
    has_looked = status.get("observedGeneration") == meta.generation(statefulset) and bool(status.get("updateRevision"))
    return has_looked and "maxUnavailable" not in rolling
