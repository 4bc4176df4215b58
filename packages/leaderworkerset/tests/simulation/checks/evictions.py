"""Defines invariants of disruption budgets, for evicted groups and for a stable state.

In: changes of pods and budgets, in the order in which the API server commits them. Out: sentences.

An eviction makes a group unavailable if the group was complete when the eviction was granted, which the API server
records in the status of the budget. The group is available again when it is complete without the evicted pod. A group
with a random key does not return: another group replaces it, so it is unavailable while there are too few complete
groups.
"""

from collections.abc import Iterator
from typing import Any

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import groupname, labels
from localkube.apiserver.storage.store import Change


class Evictions:
    """Counts the groups of one LeaderWorkerSet that are unavailable because of an evicted pod."""

    def __init__(self, limit: int, size: int, *, has_keys: bool) -> None:
        self._limit = limit
        self._has_keys = has_keys
        self._replicas = 0
        self._gone = 0
        self._size = size
        self._pods: dict[str, JSONObject] = {}
        self._budgets: dict[str, JSONObject] = {}
        self._away: dict[str, set[str]] = {}
        self.granted = 0
        self.most = 0
        self.broken: list[str] = []

    def pod_changed(self, change: Change) -> None:
        """Record a change to a pod. A group is available again when it is complete without the evicted pods."""
        name = meta.name(change.object)
        if change.type == "DELETED":
            self._pods.pop(name, None)
        else:
            self._pods[name] = change.object
        label = groupname.group_label(change.object)
        evicted = self._away.get(label, set())
        if evicted and self._is_whole(label) and not evicted & {meta.uid(pod) for pod in self._of(label)}:
            del self._away[label]
        if self._has_keys and label in self._away and all(map(meta.is_deleting, self._of(label))):
            del self._away[label]
            self._gone += 1
        self._gone = min(self._gone, self._lacking())

    def set_changed(self, change: Change) -> None:
        """Record the desired number of groups."""
        self._replicas = meta.spec(change.object)["replicas"]

    def budget_changed(self, change: Change) -> None:
        """Record a change to a budget. Each new entry of its status is a granted eviction."""
        if labels.GROUP_INDEX not in meta.labels(change.object):
            return
        label = groupname.group_label(change.object)
        known = self._disrupted(label)
        if change.type == "DELETED":
            self._budgets.pop(label, None)
            return
        self._budgets[label] = change.object
        for name in self._disrupted(label) - known:
            self._grant(label, name)

    def at_rest(self, replicas: int) -> Iterator[str]:
        """Yield the errors in a stable state.

        Each group needs a budget, and the permitted number of budgets must be open.
        """
        found = sorted(self._budgets)
        if found != sorted({groupname.group_label(pod) for pod in self._pods.values()}) or len(found) != replicas:
            yield f"there are budgets of the groups {found}"
        marked = [name for name, pod in self._pods.items() if labels.MARKED_STARTING in meta.annotations(pod)]
        if marked:
            yield f"{marked} are marked, and nothing starts"
        opened = [label for label, budget in self._budgets.items() if meta.spec(budget)["minAvailable"] == 0]
        if len(opened) != min(self._limit, replicas):
            yield f"{opened} are open, and {self._limit} may be away"

    def _grant(self, label: str, name: str) -> None:
        if self._is_whole(label):
            self.granted += 1
            self._away[label] = set()
        if label in self._away:
            self._away[label].add(meta.uid(self._pods[name]))
        away = len(self._away) + self._gone
        self.most = max(self.most, away)
        if away > self._limit:
            self.broken.append(f"{sorted(self._away)} and {self._gone} more are away, and {self._limit} may be")

    def _lacking(self) -> int:
        """Return the number of missing or incomplete groups that are not known to be unavailable."""
        whole = sum(self._is_whole(label) for label in {groupname.group_label(pod) for pod in self._pods.values()})
        return max(self._replicas - whole - len(self._away), 0)

    def _is_whole(self, label: str) -> bool:
        ready = [pod for pod in self._of(label) if meta.is_condition_true(pod, "Ready") and not meta.is_deleting(pod)]
        return len(ready) == self._size

    def _of(self, label: str) -> list[JSONObject]:
        return [pod for pod in self._pods.values() if groupname.group_label(pod) == label]

    def _disrupted(self, label: str) -> set[Any]:
        return set(meta.status(self._budgets.get(label, {})).get("disruptedPods") or {})
