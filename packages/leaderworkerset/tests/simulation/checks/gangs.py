"""Defines additional invariants of LeaderWorkerSets with `spec.scheduling`.

- Whole or nothing: a pod of a gang gets a node only when all pods of the gang get one, unless they had one before.
- Names: Workloads and PodGroups have the names of the contract, by which controllers may adopt them
  (N-K8S-3 to N-K8S-5).
- At rest: there is one Workload, and exactly the PodGroups that pods name, each with the minimum of its pods. No gate
  is left closed, and the condition is True (N-K8S-8, N-K8S-13, N-AT-10, N-AT-25).
"""

import asyncio
import re
from collections.abc import Iterator
from typing import Any, Final

from tests.scheduled import link_of
from tests.simulation.checks.facts import Group, Target
from tests.simulation.checks.invariants import CREATED, DELETED, PATCHED, Invariants, what
from tests.simulation.checks.randomkeys import RandomKeyInvariants
from tests.simulation.schedules.podgroups import POD_GROUPS, WORKLOADS

from kuberuntime.client.transport import Request
from kuberuntime.clock import Clock
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core.policies.replacement import is_gated
from localkube.apiserver.storage.store import Change, Store

OURS: Final = {WORKLOADS.group_resource, POD_GROUPS.group_resource}
ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
ROLES: Final = f"({labels.LEADER}|{labels.WORKER})"


class GangInvariants(Invariants):
    """Checks of a LeaderWorkerSet with `spec.scheduling` and indexed groups."""

    created = CREATED | OURS
    deleted = DELETED | {POD_GROUPS.group_resource}
    patched = PATCHED | OURS | {PODS.group_resource, LEADERWORKERSETS.group_resource}

    def __init__(self, store: Store, clock: Clock) -> None:
        super().__init__(store, clock)
        self._whole: set[str] = set()
        """The UIDs of leaders and LeaderWorkerSets whose pods have all been bound to a node."""
        for group in self.facts.groups().values():
            self._whole |= {meta.uid(group.leader), *self.facts.line(meta.uid(group.leader))}

    def unanswered_failures(self) -> list[str]:
        """Also return the deviations in a stable state."""
        found = super().unanswered_failures()
        for lws in self.facts.objects.get(LEADERWORKERSETS.group_resource, {}).values():
            found += [*self._objects_at_rest(lws), *self._pods_at_rest()]
            if not meta.is_condition_true(lws, "WorkloadSchedulingCreated"):
                found.append("the condition WorkloadSchedulingCreated is not True though nobody writes any more")
        return found

    def _step(self, change: Change) -> None:
        super()._step(change)
        if change.key.resource in OURS and change.type == "ADDED":
            self._check_name(change)
        elif change.key.resource == PODS.group_resource and change.type == "MODIFIED":
            was_bound = meta.spec(change.previous or {}).get("nodeName")
            # check later, because the other pods of the gang are bound at the same time
            if meta.spec(change.object).get("nodeName") and not was_bound:
                asyncio.get_running_loop().call_soon(self._check_whole, change)

    def _check_name(self, change: Change) -> None:
        owner = meta.controller_of(change.object)
        if owner is None:
            self._violate(f"nobody controls the new {what(change)}")
            return
        workload = f"{owner['name']}-{identity(owner['uid'])}"
        own = meta.labels(change.object)
        ends = f"-{own.get(labels.GROUP_INDEX)}(-{ROLES})?-{own.get(labels.TEMPLATE_REVISION_HASH)}"
        patterns = {
            "": re.escape(workload),
            "lws": re.escape(f"{workload}-lws"),
            "replica": re.escape(workload) + self._incarnation + ends,
            "role": re.escape(workload) + self._incarnation + ends,
        }
        if not re.fullmatch(patterns[own.get(labels.SCHEDULING_LEVEL, "")], change.key.name):
            self._violate(f"{what(change)} is not named after {workload}")

    _incarnation = rf"\.[{ALPHABET}]{{5}}"

    def _check_whole(self, change: Change) -> None:
        """Check that a pod is bound to a node only if there are nodes for its gang."""
        if not self.facts.specs:
            return
        scheduling = self.facts.specs[-1]["scheduling"]
        pods = self.facts.objects.get(PODS.group_resource, {}).values()
        if "schedulingPolicy" in scheduling:
            (lws,) = (one for one in self.facts.objects[LEADERWORKERSETS.group_resource].values())
            # the pod belongs to a set that was replaced
            if meta.uid(lws) not in self.facts.line(meta.uid(change.object)):
                return
            bound = sum(_is_bound(pod) for pod in pods if meta.uid(lws) in self.facts.line(meta.uid(pod)))
            least = min(spec["replicas"] * spec["leaderWorkerTemplate"]["size"] for spec in self.facts.specs)
            never = [
                one
                for one in self.facts.groups().values()
                if groupname.has_random_key(one.leader) and is_gated(one.leader) and self.facts.is_outdated(one.leader)
            ]
            self._note_whole(meta.uid(lws), bound, least - sum(group.size for group in never), change)
            return
        for group in self.facts.groups().values():
            members = group.workers if "replica" in scheduling else [group.leader, *group.workers]
            expected = group.size - ("replica" in scheduling)
            if meta.uid(change.object) in map(meta.uid, members) and not group.has_failed and not group.is_hurt:
                self._note_whole(meta.uid(group.leader), sum(map(_is_bound, members)), expected, change)

    def _note_whole(self, uid: str, bound: int, least: int, change: Change) -> None:
        if bound < least and uid not in self._whole:
            self._violate(f"{bound} pods of a gang of {least} have a node after {what(change)}")
        self._whole.add(uid)

    def _check_leader_deletion(self, actor: str, target: Target, request: Request, leader: JSONObject) -> None:
        """Also permit that a group without workers is recreated while its PodGroup is deleted (N-117-2)."""
        group = self.facts.group_of(leader)
        terminating = {
            meta.labels(one).get(labels.GROUP_INDEX)
            for one in self.facts.objects.get(POD_GROUPS.group_resource, {}).values()
            if meta.is_deleting(one)
        }
        if group is None or group.workers or meta.labels(leader).get(labels.GROUP_INDEX) not in terminating:
            super()._check_leader_deletion(actor, target, request, leader)

    def _pods_at_rest(self) -> Iterator[str]:
        for group in self.facts.groups().values():
            if is_gated(group.leader) and not meta.is_deleting(group.leader) and not self._has_evidence():
                yield f"{meta.name(group.leader)} waits though nobody writes any more"
            yield from (f"{meta.name(pod)} names no PodGroup" for pod in _members(group) if not link_of(pod))

    def _objects_at_rest(self, lws: JSONObject) -> Iterator[str]:
        known = {name: self.facts.objects.get(name, {}) for name in OURS}
        workload = f"{meta.name(lws)}-{identity(meta.uid(lws))}"
        if list(known[WORKLOADS.group_resource]) != [workload]:
            yield f"the Workloads are {list(known[WORKLOADS.group_resource])}, not {workload}"
        wanted = dict(self._minima(lws, workload))
        found = {name: _minimum(one) for name, one in known[POD_GROUPS.group_resource].items()}
        if found != wanted:
            yield f"the PodGroups have the minima {found}, not {wanted}"

    def _minima(self, lws: JSONObject, workload: str) -> Iterator[tuple[str, Any]]:
        """Yield the names of the desired PodGroups and their numbers of pods."""
        spec = meta.spec(lws)
        if "schedulingPolicy" in spec["scheduling"]:
            if spec["replicas"]:
                yield f"{workload}-lws", spec["replicas"] * spec["leaderWorkerTemplate"]["size"]
            return
        for group in self.facts.groups().values():
            if "replica" not in spec["scheduling"]:
                yield link_of(group.leader), group.size
                continue
            yield link_of(group.leader), 1
            yield link_of(group.leader).replace(f"-{labels.LEADER}-", f"-{labels.WORKER}-"), group.size - 1

    def _has_evidence(self) -> bool:
        return any(labels.GROUP_RESTART_BUDGET_EXHAUSTED in meta.annotations(group.leader)
                   for group in self.facts.groups().values())  # fmt: skip


class KeyedGangInvariants(GangInvariants, RandomKeyInvariants):
    """Checks of a LeaderWorkerSet with `spec.scheduling` and random group keys."""

    patched = GangInvariants.patched | RandomKeyInvariants.patched
    _incarnation = ""


def identity(uid: str) -> str:
    """Return the UID hash that names contain, as specified in the contract (N-K8S-3)."""
    value = 2166136261
    for byte in f"(types.UID){uid}".encode():
        value = (value ^ byte) * 16777619 % 2**32
    return "".join(ALPHABET[ord(digit) % len(ALPHABET)] for digit in str(value))


def _members(group: Group) -> list[JSONObject]:
    return [group.leader, *group.workers]


def _is_bound(pod: JSONObject) -> bool:
    return bool(meta.spec(pod).get("nodeName")) and not meta.is_deleting(pod)


def _minimum(pod_group: JSONObject) -> int | None:
    minimum: int | None = meta.spec(pod_group)["schedulingPolicy"].get("gang", {}).get("minCount")
    return minimum
