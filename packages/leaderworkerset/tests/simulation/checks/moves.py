"""Checks the number of unavailable groups during moves, and the number of moves per group.

In: changes of pods, in the order in which the API server commits them. Out: sentences.

A group is unavailable from the deletion of its leader until the desired number of groups is complete.
"""

from collections.abc import Callable, Collection
from typing import Final

from tests.simulation.checks.facts import Group, Target
from tests.simulation.checks.invariants import Invariants

from kuberuntime.client.transport import Request
from kuberuntime.clock import Clock
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.conditions import MOVE_IN_PROGRESS
from leaderworkerset.api.leaderworkerset import decode
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core.leaderworkerset import budget
from localkube.apiserver.storage.store import Change, Store


class Moves:
    """Counts the groups of a LeaderWorkerSet whose leaders were deleted.

    During a move, leaders must not be deleted for any other reason.
    """

    def __init__(self, replicas: int, size: int, limit: int) -> None:
        self._replicas = replicas
        self._size = size
        self._limit = limit
        self._pods: dict[str, JSONObject] = {}
        self.moved: list[str] = []
        """The UIDs of deleted leaders, with one entry for each move."""
        self.broken: list[str] = []

    def pod_changed(self, change: Change) -> None:
        """Record a change to a pod. A move starts when the deletion of a leader starts."""
        name, pod = meta.name(change.object), change.object
        known = self._pods.get(name)
        was_there = known is not None and meta.uid(known) == meta.uid(pod) and not meta.is_deleting(known)
        if change.type == "DELETED":
            self._pods.pop(name, None)
        else:
            self._pods[name] = pod
        if was_there and groupname.is_leader(pod) and (change.type == "DELETED" or meta.is_deleting(pod)):
            self.moved.append(meta.uid(pod))
            away = self._replicas - self._whole()
            if away > self._limit:
                self.broken.append(f"{away} groups are away when {name} is moved, and {self._limit} may be")

    def on(self, *nodes: str) -> set[str]:
        """Return the UIDs of leaders whose group has a pod on one of these nodes."""
        labels = {groupname.group_label(pod) for pod in self._pods.values() if meta.spec(pod).get("nodeName") in nodes}
        leaders = (pod for pod in self._pods.values() if groupname.is_leader(pod))
        return {meta.uid(pod) for pod in leaders if groupname.group_label(pod) in labels}

    def _whole(self) -> int:
        staying = [groupname.group_label(pod) for pod in self._pods.values() if _stays(pod)]
        return sum(staying.count(label) == self._size for label in set(staying))


FRESH: Final = 60.0
"""The virtual time in seconds until a manager observes a failure or a new size.

The manager may be paused or stopped.
"""


class MovesAmongOthers(Moves):
    """Checks that leaders of complete groups are deleted only for moves and rollouts.

    In the meantime, groups also fail and are scaled.

    An event that a manager cannot know is not its error: what was just `disturbed` is not judged.
    """

    def __init__(self, replicas: int, size: int, limit: int, clock: Callable[[], float]) -> None:
        super().__init__(replicas, size, limit)
        self._clock = clock
        self._disturbed = -FRESH
        self.judged = 0

    def disturbed(self, replicas: int | None = None) -> None:
        """Record a failure or a change to the number of groups."""
        self._disturbed = self._clock()
        self._replicas = replicas or self._replicas

    def pod_changed(self, change: Change) -> None:
        """Record a change to a pod. A complete group may be deleted only while enough others are complete."""
        before, found = self._whole(), len(self.broken)
        super().pod_changed(change)
        is_fresh = self._clock() - self._disturbed < FRESH
        self.judged += before > self._whole() and not is_fresh
        if before == self._whole() or is_fresh:
            del self.broken[found:]


class MoveInvariants(Invariants):
    """Checks random schedules with moved groups.

    Exactly the groups that must leave move, within the bounds of rollouts.

    A manager may not know yet that a node was opened.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        super().__init__(store, clock)
        self._closed: set[str] = set()
        self._opened: dict[str, float] = {}

    def close(self, node: str, *, closed: bool) -> None:
        """Record that a node was cordoned or uncordoned."""
        if closed:
            self._closed.add(node)
        elif node in self._closed:
            self._closed.remove(node)
            self._opened[node] = self._clock.monotonic()

    def _check_leader_deletion(self, actor: str, target: Target, request: Request, leader: JSONObject) -> None:
        group = self.facts.group_of(leader)
        if group is None or not self._has_to_leave(group, self._closed | self._just_opened()):
            super()._check_leader_deletion(actor, target, request, leader)

    def unanswered_failures(self) -> list[str]:
        """Also return the groups that have not been moved from their nodes in a stable state.

        Only sets whose groups are all available and not blocked are checked.

        Rule LWS-E095.
        """
        groups = self.facts.groups()
        sets = self.facts.objects.get(LEADERWORKERSETS.group_resource, {}).values()
        is_whole = not any(map(is_held_back, sets)) and all(
            group.is_available and not self.facts.is_outdated(group.leader) for group in groups.values()
        )
        left = [f"group {index} was not moved" for index, group in sorted(groups.items())
                if is_whole and self._has_to_leave(group, self._closed)]  # fmt: skip
        told = [f"{meta.name(lws)} reports moves, and no group has to leave" for lws in sets
                if meta.is_condition_true(lws, MOVE_IN_PROGRESS.type)
                and not any(self._has_to_leave(group, self._closed) for group in groups.values())]  # fmt: skip
        return [*super().unanswered_failures(), *left, *told]

    def _just_opened(self) -> set[str]:
        return {node for node, at in self._opened.items() if self._clock.monotonic() - at < FRESH}

    def _has_to_leave(self, group: Group, nodes: Collection[str]) -> bool:
        pods = (group.leader, *group.workers)
        is_marked = labels.MOVE_GROUP in meta.annotations(group.leader)
        return is_marked or any(meta.spec(pod).get("nodeName") in nodes for pod in pods)


def _stays(pod: JSONObject) -> bool:
    return meta.is_condition_true(pod, "Ready") and not meta.is_deleting(pod)


def is_held_back(lws: JSONObject) -> bool:
    """Return whether no available group of a LeaderWorkerSet can be moved.

    Groups cannot be moved if no group may be unavailable and no surge group is allowed.
    """
    limits = budget.read(decode(lws).spec)
    return not limits.unavailable and (groupname.uses_random_keys(lws) or bool(limits.partition))
