"""Defines additional invariants of groups with random keys: keys, the replacement gate and updates.

- Capacity: while groups wait for the end of others, the groups with a pod that is not gated never exceed `replicas` and
  surge (N-AT-5).
- Updates: a set is available only if all groups have the current revision (N-AT-1).
- Events: a leader that waits, or is admitted, is reported once.
- At rest: no gate is left closed, no update is reported, and all names of a group derive from its one key (N-AT-2,
  N-AT-3).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from tests.simulation.checks.budgets import exhausted
from tests.simulation.checks.facts import Group, Target, limit
from tests.simulation.checks.invariants import PATCHED, Invariants, is_ready, what

from kuberuntime.client.transport import Request
from kuberuntime.clock import Clock
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import DEPLOYMENTS, PODS, REPLICA_SETS, STATEFULSETS
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core.policies.replacement import is_gated
from localkube.apiserver.storage.store import Change, Store

FINISHED: Final = {"Failed", "Succeeded"}
DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
TPU_HOSTS: Final = "TPU_WORKER_HOSTNAMES"


class RandomKeyInvariants(Invariants):
    """Checks of a LeaderWorkerSet with random group keys."""

    def __init__(self, store: Store, clock: Clock) -> None:
        super().__init__(store, clock)
        self._held_before: set[str] = set()
        self._orphans: set[str] = set()
        self._gone: set[str] = set()
        """The groups whose pods have all been deleted. A delayed controller may briefly create another pod."""
        self._resized: tuple[object, float] = (None, 0.0)
        """The size of the Deployment, and the time at which it was set."""
        self._born: dict[str, float] = {}
        """The creation times of pods by UID.

        A decision may not include pods that are younger than the observer delay.
        """

    patched = PATCHED | {PODS.group_resource, DEPLOYMENTS.group_resource}

    def unanswered_failures(self) -> list[str]:
        """Also return the deviations in a stable state."""
        repeated = [f"{count} events: {note}" for note, count in Counter(self.events).items() if count > 1]
        return [*super().unanswered_failures(), *self._at_rest(), *repeated]

    def _at_rest(self) -> Iterator[str]:
        is_full = bool(exhausted(self.facts)) or self.is_ambiguous
        for group in self.facts.groups().values():
            if not is_full and is_gated(group.leader) and not meta.is_deleting(group.leader):
                yield f"{meta.name(group.leader)} waits though nobody writes any more"
            yield from _names(group)
        for lws in self.facts.objects.get(LEADERWORKERSETS.group_resource, {}).values():
            if not is_full and meta.is_condition_true(lws, "UpdateInProgress"):
                yield "an update is reported though nobody writes any more"

    @property
    def is_ambiguous(self) -> bool:
        """Return whether the desired end state is ambiguous."""
        return super().is_ambiguous or self._stands()

    def _stands(self) -> bool:
        """Return whether a Deployment never completes scaling because its controller's write was rejected.

        The controller divides a new size among its ReplicaSets, and each of them records it. A ReplicaSet whose write was
        refused, and whose number is correct already, is not written again, and keeps the old record:
        https://github.com/kubernetes/kubernetes/issues/102551. `lws explain` names it (LWS-E089).
        """
        deployments = self.facts.objects.get(DEPLOYMENTS.group_resource, {})
        for found in self.facts.objects.get(REPLICA_SETS.group_resource, {}).values():
            owner = meta.controller_of(found)
            size = meta.spec(deployments.get(owner["name"] if owner else "") or {}).get("replicas")
            remembered = meta.annotations(found).get(DESIRED)
            if meta.spec(found).get("replicas") == size and remembered != str(size):
                return self.refused(REPLICA_SETS.path(meta.namespace(found), meta.name(found)), self._resized[1])
        return False

    def _step(self, change: Change) -> None:
        super()._step(change)
        if change.key.resource == PODS.group_resource and change.type == "ADDED":
            self._born[meta.uid(change.object)] = self._clock.monotonic()
        size = meta.spec(change.object).get("replicas")
        if change.key.resource == DEPLOYMENTS.group_resource and size != self._resized[0]:
            self._resized = (size, self._clock.monotonic())
        if change.key.resource == LEADERWORKERSETS.group_resource and change.type != "DELETED":
            self._check_available(change.object)

    def _check_available(self, lws: JSONObject) -> None:
        available = meta.find_condition(lws, "Available") or {}
        told = available.get("status") == "True" and available.get("observedGeneration") == meta.generation(lws)
        live = [group.leader for group in self.facts.groups().values() if not meta.is_deleting(group.leader)]
        known = self._clock.monotonic() - self.lag
        live = [
            leader for leader in live if self.facts.keeper(leader) and self._born.get(meta.uid(leader), 0.0) <= known
        ]
        outdated = sorted(meta.name(one) for one in live if self._is_own(one) and self.facts.is_outdated(one))
        if told and outdated:
            self._violate(f"the set is said to be available, and {outdated} are of another revision")

    def _check_groups(self, change: Change) -> None:
        if self._picks_blindly():
            self._excused |= self._available
        super()._check_groups(change)
        if not self.facts.specs:
            return
        if len(self._available) >= int(self.facts.specs[-1]["replicas"]):
            self._excused &= {index for index, group in self.facts.groups().items() if group.is_hurt}
        self._check_sizes(change)
        self._note_orphan(change)
        held = self._held()
        self._gone |= self._held_before - held
        self._held_before = held
        held -= self._gone
        waits = all(spec.get("groupReplacementPolicy") == "PostTermination" for spec in self.facts.specs)
        most = self.facts.ceiling() + self._regrown()
        if waits and len(held) > most and not self._is_tolerant:
            self._violate(f"{len(held)} groups hold capacity after {what(change)}, {most} may")

    def _note_orphan(self, change: Change) -> None:
        """Record a pod that a StatefulSet creates after its leader was deleted."""
        owner = meta.controller_of(change.object)
        if change.type != "ADDED" or change.key.resource != PODS.group_resource or owner is None:
            return
        pods = {meta.uid(one) for one in self.facts.objects.get(PODS.group_resource, {}).values()}
        if owner["kind"] == "StatefulSet" and pods.isdisjoint(self.facts.line(owner["uid"])):
            self._orphans.add(meta.uid(change.object))

    def _picks_blindly(self) -> bool:
        """Return whether a ReplicaSet may delete a healthy group because of an outdated state.

        This can happen after two changes or a failure.
        """
        return len(self.facts.specs) > 1 + (not self.facts.hurt)

    def _regrown(self) -> int:
        """Return the number of groups that were requested after a scale-down.

        Groups that it ends take no place (docs/adr/0017).
        """
        sizes = [int(spec["replicas"]) for spec in self.facts.specs]
        grown = sum(max(after - before, 0) for before, after in pairwise(sizes))
        return sizes[0] + grown - max(sizes)

    def _ceiling(self) -> int:
        """Add the size that a Deployment sets for a ReplicaSet.

        The ReplicaSet may not have observed the size of the other ReplicaSet yet.
        """
        changed = ({str(spec[name]) for spec in self.facts.specs} for name in ("replicas", "rolloutStrategy"))
        slack = max(limit(spec, "maxSurge") for spec in self.facts.specs) if all(len(one) > 1 for one in changed) else 0
        return super()._ceiling() + slack

    def _check_sizes(self, change: Change) -> None:
        large = [group for group in self.facts.groups().values() if len(group.workers) >= group.size]
        for group in large:
            members = [meta.name(pod) for pod in (group.leader, *group.workers)]
            self._violate(f"the group of {members} has the size {group.size}, after {what(change)}")

    def _held(self) -> set[str]:
        """Return the groups of this LeaderWorkerSet that have an ungated pod or a worker StatefulSet.

        If a lagging controller creates a pod for a deleted leader, the pod ends immediately, and does not count.
        """
        pods = [one for one in self.facts.objects.get(PODS.group_resource, {}).values() if not is_gated(one)]
        pods = [one for one in pods if meta.uid(one) not in self._orphans]
        workers = self.facts.objects.get(STATEFULSETS.group_resource, {}).values()
        return {groupname.group_label(one) for one in (*pods, *workers) if self._is_own(one)}

    def _is_own(self, obj: JSONObject) -> bool:
        """Return whether the current LeaderWorkerSet directly or indirectly owns an object."""
        present = {meta.uid(one) for one in self.facts.objects.get(LEADERWORKERSETS.group_resource, {}).values()}
        return not present.isdisjoint(self.facts.line(meta.uid(obj)))

    def _leaders(self, groups: Iterable[Group]) -> int:
        """Return the desired number of leaders of all ReplicaSets.

        One ReplicaSet may create pods before another one deletes pods.
        """
        own = (one for one in self.facts.objects.get(REPLICA_SETS.group_resource, {}).values() if self._is_own(one))
        return sum(int(meta.spec(one)["replicas"]) for one in own if not meta.is_deleting(one))

    def _check_leader_deletion(self, actor: str, target: Target, request: Request, leader: JSONObject) -> None:
        """Permit the deletion of a completed leader with any restart policy (docs/adr/0017)."""
        if meta.status(leader).get("phase") not in FINISHED:
            super()._check_leader_deletion(actor, target, request, leader)


def _names(group: Group) -> Iterator[str]:
    """Yield the errors of a group whose names do not match its key."""
    leader, own = group.leader, meta.labels(group.leader)
    key, host = own.get(labels.GROUP_KEY, ""), str(meta.spec(leader).get("hostname"))
    if own.get(labels.GROUP_INDEX) != key or host != f"{own.get(labels.NAME)}-{key[:8]}":
        yield f"{meta.name(leader)} has the key {key}, the index {own.get(labels.GROUP_INDEX)} and the host {host}"
    members = [host, *(f"{host}-{number}" for number in range(1, group.size))]
    found = [host, *sorted(meta.name(pod) for pod in group.workers if is_ready(pod))]
    if is_ready(leader) and found != members:
        yield f"the group of {meta.name(leader)} has the members {found}, not {members}"
    for pod in (leader, *group.workers):
        if meta.labels(pod).get(labels.GROUP_INDEX) != key:
            yield f"{meta.name(pod)} is not labeled with the key {key} of its leader"
        yield from _addresses(pod, members)


def _addresses(pod: JSONObject, members: Sequence[str]) -> Iterator[str]:
    env = {one["name"]: one.get("value", "") for one in meta.spec(pod)["containers"][0].get("env") or ()}
    if env["LWS_LEADER_ADDRESS"].split(".")[0] != members[0]:
        yield f"{meta.name(pod)} calls its leader {env['LWS_LEADER_ADDRESS']}"
    hosts = [one.split(".")[0] for one in env[TPU_HOSTS].split(",")] if TPU_HOSTS in env else members
    if hosts != members:
        yield f"{meta.name(pod)} is told of the hosts {hosts}, not {members}"
