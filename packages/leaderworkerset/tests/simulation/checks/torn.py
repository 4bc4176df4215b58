"""Finds groups in which a single worker was replaced although the group should have been recreated.

In: every change that the API server commits, and when managers begin. Out: at the end, sentences about the groups under
`RecreateGroupOnPodRestart` with a worker that was created after a member of its group had been ready, and that is not
the first of its name. Late workers that are the first (of a quota, of `LeaderReady`) tear nothing, nor do workers of
another StatefulSet of the same leader (R-POD-8).

A running manager sees the deletion of a worker. A manager that begins later can know it by the last status, and must.
If the status does not show it, the group may stay torn (docs/adr/0014, "Consequences").
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import msgspec

from kuberuntime.clock import Clock
from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS, STATEFULSETS
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from localkube.apiserver.storage.store import Change, Store

BEGINNING: Final = 30.0
"""The maximum time in seconds in which a starting manager reads all objects, with slow requests."""

GRANTED: Final = timedelta(minutes=1)
"""The minimum time between a manager's timestamp and the creation of a replacement worker."""

DRIFT: Final = timedelta(seconds=2)
"""The minimum time between the last status, which an API server timestamps, and the creation of the worker."""


@dataclass(slots=True)
class Life:
    """The lifetime of a pod, in virtual seconds. `created` is the API server's time."""

    name: str
    owner: str
    created: str
    born: float
    ready: float | None = None
    ended: float | None = None


@dataclass(frozen=True, slots=True)
class Beginning:
    """The start of a manager.

    For each UID, it contains since when all groups are ready, according to the statuses that the manager reads.

    Each of these times has another one, after which a worker is known as a second one.
    """

    at: float
    whole_since: dict[str, list[tuple[str, str]]]


@dataclass
class Torn:
    """Records the objects of a store from the start of the cluster."""

    store: Store
    clock: Clock
    lives: dict[str, Life] = field(default_factory=dict)
    """The pods by UID, including deleted pods."""
    policies: dict[str, set[str]] = field(default_factory=dict)
    """All restart policies of each LeaderWorkerSet, by UID."""
    beginnings: list[Beginning] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store.subscribe(self._committed)

    def manager_begins(self) -> None:
        """Record the objects that a starting manager reads."""
        found: dict[str, list[tuple[str, str]]] = {
            meta.uid(one): self._whole_since(one) for one in self._all(LEADERWORKERSETS.group_resource)
        }
        self.beginnings.append(Beginning(self.clock.monotonic(), found))

    def groups(self) -> Iterator[str]:
        """Return the groups that were not recreated, in violation of the contract."""
        pods: dict[str, JSONObject] = {meta.uid(pod): pod for pod in self._all(PODS.group_resource)}
        sets: dict[str, str] = {meta.name(one): meta.uid(one) for one in self._all(LEADERWORKERSETS.group_resource)}
        for workers in self._all(STATEFULSETS.group_resource):
            owner, lws = meta.controller_of(workers), sets.get(meta.labels(workers).get(labels.NAME, ""), "")
            leader = pods.get(owner["uid"]) if owner else None
            if leader is None or meta.is_deleting(leader) or self.policies.get(lws) != {"RecreateGroupOnPodRestart"}:
                continue
            own = {meta.uid(workers), meta.uid(leader)}
            members = [life for uid, life in self.lives.items() if {uid, life.owner} & own]
            for life in (one for one in members if one.ended is None):
                ended = _end_of_predecessor(life, members)
                if ended is not None and self._had_to_be_known(life, ended, meta.metadata(workers), lws):
                    yield f"group of {meta.name(leader)} was not recreated, though {life.name} was replaced alone"

    def _had_to_be_known(self, life: Life, ended: float, workers: JSONObject, lws: str) -> bool:
        """Return whether a manager had to detect a replaced worker.

        It was running when the previous worker terminated, or the last started manager could detect the replacement.
        """
        begun = [one for one in self.beginnings if one.at > ended - BEGINNING]
        if not begun:
            return True
        manager = begun[-1]
        was_missing = ended < manager.at < life.born - BEGINNING
        return any(
            workers["creationTimestamp"] < since and (was_missing or life.created > latest)
            for since, latest in manager.whole_since.get(lws, ())
        )

    def _whole_since(self, lws: JSONObject) -> list[tuple[str, str]]:
        """Return since when a LeaderWorkerSet reports all groups as ready, or an empty string."""
        status, available = meta.status(lws), meta.find_condition(lws, "Available") or {}
        if not status.get("readyReplicas") or status["readyReplicas"] != status.get("replicas"):
            return []
        writes = [one["time"] for one in lws["metadata"].get("managedFields", ()) if one.get("subresource") == "status"]
        counted = status["readyReplicas"] >= self._leaders(lws) and not self._are_clocks_known_to_differ(lws)
        pairs = [(one, DRIFT) for one in sorted(writes)[-1:] if counted]
        if available.get("status") == "True":
            pairs.append((available["lastTransitionTime"], GRANTED))
        return [(since, timestamps.render(timestamps.parse(since) + granted)) for since, granted in pairs]

    def _leaders(self, lws: JSONObject) -> int:
        """Count the leaders of a LeaderWorkerSet. `status.replicas` does not include a recently recreated leader."""
        marks = {labels.NAME: meta.name(lws), labels.WORKER_INDEX: "0"}
        return sum(marks.items() <= meta.labels(pod).items() for pod in self._all(PODS.group_resource))

    def _are_clocks_known_to_differ(self, lws: JSONObject) -> bool:
        """Return whether a StatefulSet has an earlier creation time than its leader."""
        pods = {str(meta.uid(pod)): pod for pod in self._all(PODS.group_resource)}
        for workers in self._all(STATEFULSETS.group_resource):
            owner = meta.controller_of(workers)
            leader = (
                pods.get(owner["uid"]) if owner and meta.labels(workers).get(labels.NAME) == meta.name(lws) else None
            )
            if leader is not None and meta.creation_timestamp(workers) < meta.creation_timestamp(leader):
                return True
        return False

    def _committed(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if change.key.resource == PODS.group_resource:
                self._note_pod(change)
            elif change.key.resource == LEADERWORKERSETS.group_resource:
                policy = meta.spec(change.object)["leaderWorkerTemplate"].get("restartPolicy", "")
                self.policies.setdefault(meta.uid(change.object), set()).add(policy)

    def _note_pod(self, change: Change) -> None:
        pod, owner, now = change.object, meta.controller_of(change.object), self.clock.monotonic()
        created = meta.metadata(pod)["creationTimestamp"]
        life = self.lives.setdefault(meta.uid(pod), Life(meta.name(pod), owner["uid"] if owner else "", created, now))
        if life.ready is None and meta.is_condition_true(pod, "Ready"):
            life.ready = now
        if change.type == "DELETED":
            life.ended = now

    def _all(self, resource: str) -> list[JSONObject]:
        return [msgspec.json.decode(value) for value in self.store.list(resource)]


def _end_of_predecessor(life: Life, members: Sequence[Life]) -> float | None:
    """Return when the last pod with the same name terminated.

    Return None if there is none, or if no other member had been ready before.
    """
    was_ready = any(one.ready is not None and one.ready < life.born for one in members if one.name != life.name)
    ends = [one.ended for one in members if one.name == life.name and one.born < life.born and one.ended is not None]
    return max(ends) if ends and was_ready else None
