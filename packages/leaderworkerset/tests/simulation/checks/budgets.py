"""Defines invariants of groups with limited restarts, for every write and for a stable state.

In: the objects of the API server, and recreations as managers perform them. Out: sentences.

- Counts: no group uses more restarts than permitted, counted by the annotation and by the deletions of its leaders
  (except deletions for a new revision). A group that was recovered or scaled down begins again, as its count does.
- Evidence: an exhausted leader is kept; at rest only exhausted groups are kept, and each of these used up its restarts.
- Others continue: at rest every group that is not exhausted is complete.
"""

from collections import Counter
from collections.abc import Iterator

from tests.simulation.checks.facts import Facts, Group

from kuberuntime.objects import meta
from kuberuntime.objects.meta import UID, JSONObject
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import groupname
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core.policies.replacement import is_gated
from leaderworkerset.core.restarts import counts
from leaderworkerset.core.restarts.counts import Key
from leaderworkerset.core.restarts.retention import is_retained


class Budgets:
    """Counts restarts by leader deletions, and compares them with the limit and the annotation."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self.is_meddled = False
        """Whether a user changed managed objects.

        Leaders that are created and deleted as a result may lose evidence and counts.
        """
        self._used: Counter[Key] = Counter()
        self._counted: set[Key] = set()
        self._exhausted: set[UID] = set()

    def restarted(self, leader: JSONObject) -> Iterator[str]:
        """Count a leader that a manager deletes. The deletion of an exhausted leader completes its group."""
        if self._facts.limit is None or groupname.is_exhausted(leader) or meta.uid(leader) in self._exhausted:
            return
        key = Key.from_leader(leader)
        self._used[key] += 1
        if self._used[key] > self._facts.limit:
            yield f"group {key} was restarted {self._used[key]} times of {self._facts.limit}"

    def counted(self, lws: JSONObject) -> Iterator[str]:
        """Compare the annotation with the limit.

        If the count of a group was removed, its restarts are counted from zero.
        """
        known = counts.read(lws)
        for key in self._counted - known.keys():
            del self._used[key]
        self._counted = set(known)
        yield from (
            f"group {key} counts {count} restarts of {self._facts.limit}"
            for key, count in known.items()
            if self._facts.limit is not None and count > self._facts.limit
        )

    def ended(self) -> None:
        """Remove the counts of a deleted LeaderWorkerSet."""
        self._used.clear()
        self._counted.clear()

    def kept(self, pod: JSONObject) -> Iterator[str]:
        """Check a written pod."""
        if groupname.is_exhausted(pod):
            self._exhausted.add(meta.uid(pod))
        if groupname.is_exhausted(pod) and not is_retained(pod) and not meta.is_deleting(pod):
            yield f"{meta.name(pod)} is exhausted, and nothing keeps it"

    def at_rest(self) -> Iterator[str]:
        """Check the remaining objects after all writes have stopped."""
        found = self._facts.groups()
        exhausted = [group for group in found.values() if groupname.is_exhausted(group.leader)]
        evidence = {meta.uid(pod) for group in exhausted for pod in (group.leader, *group.workers)}
        for pod in self._facts.objects.get(PODS.group_resource, {}).values():
            if is_retained(pod) and meta.uid(pod) not in evidence:
                yield f"{meta.name(pod)} is kept, and its group is not exhausted"
        for group in exhausted if not self.is_meddled else ():
            yield from self._spent(group)
        yield from (
            f"group {index} is not whole, and not exhausted"
            for index, group in sorted(found.items(), key=str)
            if exhausted and group not in exhausted and not group.is_available and not is_gated(group.leader)
        )

    def _spent(self, group: Group) -> Iterator[str]:
        key = Key.from_leader(group.leader)
        for lws in self._facts.objects.get(LEADERWORKERSETS.group_resource, {}).values():
            used = counts.read(lws).get(key, 0)
            if used != self._facts.limit:
                yield f"group {key} is exhausted with {used} of {self._facts.limit} restarts"
        if not meta.is_deleting(group.leader):
            yield f"{meta.name(group.leader)} is exhausted, and was not terminated"
        yield from (
            f"{meta.name(pod)} of an exhausted group goes, and nothing keeps it"
            for pod in (group.leader, *group.workers)
            if not is_retained(pod)
        )


def exhausted(facts: Facts) -> list[JSONObject]:
    """Return the leaders of exhausted groups."""
    return [group.leader for group in facts.groups().values() if groupname.is_exhausted(group.leader)]
