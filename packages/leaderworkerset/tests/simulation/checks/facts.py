"""Provides the API server's objects to invariants, as groups by incarnation, identities, and limits."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from tests.simulation.cluster import NAMESPACE
from tests.simulation.schedules.podgroups import POD_GROUPS, WORKLOADS

from kuberuntime.client.transport import Request
from kuberuntime.objects import meta, podstate
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import (
    CONTROLLER_REVISIONS,
    DEPLOYMENTS,
    LEASES,
    PODS,
    REPLICA_SETS,
    SERVICES,
    STATEFULSETS,
)
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.capabilities import deciding
from leaderworkerset.core.leaderworkerset.revisions import COVERED

FOREIGN: Final = "simulation/foreign"
"""The annotation of objects that belong to other owners."""

TOUCHED: Final = "simulation/touched"
"""The annotation with which a schedule changes managed objects.

Worker StatefulSets copy the annotations of the set when they are created (R-WSTS-3).
"""

KINDS: Final = {
    one.group_resource for one in (LEADERWORKERSETS, STATEFULSETS, DEPLOYMENTS, REPLICA_SETS, PODS, SERVICES,
                                   CONTROLLER_REVISIONS, WORKLOADS, POD_GROUPS)
}  # fmt: skip

Index: TypeAlias = int | str
"""The index of a group, which is a number or a random key."""

RECREATING: Final = {"RecreateGroupOnPodRestart", "RecreateGroupAfterStart"}


class Target(NamedTuple):
    """The target of a request. The name is empty if the request creates an object."""

    resource: str
    name: str
    subresource: str

    def __str__(self) -> str:
        return f"{self.resource} {self.name}".strip()


def read_target(request: Request) -> Target | None:
    """Return the target of a request, or None for leases and for other namespaces.

    Leader election uses the leases.
    """
    parts = request.path.strip("/").split("/")
    group = "" if parts[0] == "api" else f".{parts[1]}"
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    if rest[:1] == ["namespaces"]:
        if rest[1] != NAMESPACE:
            return None
        rest = rest[2:]
    resource = f"{rest[0]}{group}"
    if resource == LEASES.group_resource:
        return None
    return Target(resource, rest[1] if len(rest) > 1 else "", rest[2] if len(rest) > 2 else "")


@dataclass(slots=True)
class Group:
    """An incarnation of a group: a leader, and the pods of the StatefulSet that this leader owns."""

    index: Index
    leader: JSONObject
    size: int
    workers: list[JSONObject] = field(default_factory=list)
    is_reported: bool = True
    is_hurt: bool = False
    has_failed: bool = False

    @property
    def is_available(self) -> bool:
        """Return whether all pods of the group exist, are ready and are not being deleted.

        The StatefulSet of the workers must also report it.

        A manager knows of ready workers by that report only (R-STAT-6), which a slow controller writes seconds later.
        """
        pods = (self.leader, *self.workers)
        whole = len(pods) == self.size and self.is_reported
        return whole and all(meta.is_condition_true(pod, "Ready") and not meta.is_deleting(pod) for pod in pods)


@dataclass
class Facts:
    """All relevant objects by resource and name, and facts about earlier changes."""

    objects: dict[str, dict[str, JSONObject]] = field(default_factory=dict)
    identities: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The kind and name of every object that was ever created, by UID."""
    hurt: set[str] = field(default_factory=set)
    """The UIDs of pods that another actor modified or broke."""
    failed: set[str] = field(default_factory=set)
    """The UIDs of pods that were restarted or deleted."""
    owners: dict[str, str] = field(default_factory=dict)
    """The UID of the leader by worker StatefulSet UID, and of the StatefulSet by pod UID."""
    specs: list[JSONObject] = field(default_factory=list)
    """The specs of the LeaderWorkerSet since the start of the schedule."""
    has_recreated: bool = False
    """Whether any of these specs recreates groups."""
    has_limited: bool = False
    """Whether any spec limited group restarts. Evidence briefly exists after its LeaderWorkerSet was deleted."""
    has_stayed: bool = False
    """Whether groups ever had to return to their nodes. In this case, their preferences depend on earlier changes."""
    has_tolerated: bool = False
    """Whether pods could ever restart all their containers in place. Their annotations record such restarts."""
    has_rolled: bool = False
    """Whether the specs differ in fields that a revision contains."""
    has_leader_templates: bool = False
    """Whether leaders ever had a separate template."""

    def put(self, resource: str, obj: JSONObject) -> None:
        """Store the current object. Other kinds and namespaces are ignored."""
        if resource not in KINDS or meta.namespace(obj) != NAMESPACE:
            return
        self.objects.setdefault(resource, {})[meta.name(obj)] = obj
        self.identities[meta.uid(obj)] = (obj["kind"], meta.name(obj))
        owner = meta.controller_of(obj)
        if owner is not None:
            self.owners[meta.uid(obj)] = owner["uid"]
        if resource == PODS.group_resource and _has_failed(obj):
            self.failed.add(meta.uid(obj))
        if resource == LEADERWORKERSETS.group_resource:
            self._note_spec(obj)

    def remove(self, resource: str, obj: JSONObject) -> None:
        """Remove an object."""
        self.objects.get(resource, {}).pop(meta.name(obj), None)
        if resource == PODS.group_resource:
            self.failed.add(meta.uid(obj))

    def exist(self, uids: Iterable[str]) -> bool:
        """Return whether all objects with these UIDs exist."""
        present = {meta.uid(obj) for named in self.objects.values() for obj in named.values()}
        return present.issuperset(uids)

    def find(self, target: Target) -> JSONObject | None:
        """Return the object that a request targets."""
        return self.objects.get(target.resource, {}).get(target.name)

    def groups(self) -> dict[Index, Group]:
        """Return the existing incarnations by group index."""
        pods = self.objects.get(PODS.group_resource, {}).values()
        found: dict[str, Group] = {}
        for pod in pods:
            mark = meta.labels(pod)
            if mark.get(labels.WORKER_INDEX) == "0" and FOREIGN not in meta.annotations(pod):
                size = int(meta.annotations(pod).get(labels.SIZE) or 1)
                found[meta.uid(pod)] = Group(index_of(pod), pod, size)
        for pod in pods:
            leader = self.owners.get(self.owners.get(meta.uid(pod), ""), "")
            if leader in found:
                found[leader].workers.append(pod)
        for workers in self.objects.get(STATEFULSETS.group_resource, {}).values():
            leader = self.owners.get(meta.uid(workers), "")
            if leader in found:
                found[leader].is_reported = (
                    meta.status(workers).get("availableReplicas") == meta.spec(workers)["replicas"]
                )
        self._mark(found.values())
        return {group.index: group for group in found.values()}

    def group_of(self, leader: JSONObject) -> Group | None:
        """Return the group of a leader pod."""
        return next((one for one in self.groups().values() if meta.uid(one.leader) == meta.uid(leader)), None)

    def may_be_broken(self, group: Group) -> bool:
        """Return whether a group of an older revision exists and is unavailable. No update waits for such a group."""
        pods = (group.leader, *group.workers)
        is_staying = not self.is_updating(group) and not any(map(meta.is_deleting, pods))
        return not group.is_available and is_staying and self.is_outdated(group.leader)

    def is_updating(self, group: Group) -> bool:
        """Return whether a group is being updated in place to a different revision."""
        found = self.objects.get(STATEFULSETS.group_resource, {}).get(meta.name(group.leader))
        workers = found if found is not None and meta.is_controlled(found, group.leader) else None
        return bool(deciding.describe_group(group.leader, workers).target_revision)

    def is_outdated(self, leader: JSONObject) -> bool:
        """Return whether the leader has a different revision than its StatefulSet or Deployment."""
        keeper = self.keeper(leader)
        if keeper is None:
            return True
        template = meta.spec(keeper)["template"]
        key = labels.TEMPLATE_REVISION_HASH
        return meta.labels(template).get(key) != meta.labels(leader).get(key)

    def keeper(self, leader: JSONObject) -> JSONObject | None:
        """Return the StatefulSet or Deployment of a leader."""
        resource = STATEFULSETS if isinstance(index_of(leader), int) else DEPLOYMENTS
        return self.objects.get(resource.group_resource, {}).get(meta.labels(leader).get(labels.NAME, ""))

    def is_released(self, group: Group) -> bool:
        """Return whether the leader StatefulSet or Deployment must replace the leader of a group.

        Rule R-ROLL-7.
        """
        keeper = self.keeper(group.leader)
        strategy = meta.spec(keeper).get("updateStrategy") if keeper else None
        partition = ((strategy or {}).get("rollingUpdate") or {}).get("partition") or 0
        is_held_back = isinstance(group.index, int) and group.index < partition
        return not is_held_back and self.is_outdated(group.leader)

    @property
    def limit(self) -> int | None:
        """Return the highest restart limit of all specs, or None if a spec has no limit."""
        limits = [spec["leaderWorkerTemplate"].get("maxGroupRestarts") for spec in self.specs] or [None]
        return None if None in limits else max(limits)

    def floor(self) -> int:
        """Return the number of groups that must remain available, according to the least strict spec."""
        return min(_replicas(spec) - _unavailable(spec) for spec in self.specs)

    def sizes(self) -> list[int]:
        """Return the desired number of leaders of each ReplicaSet, in ascending order."""
        found = self.objects.get(REPLICA_SETS.group_resource, {}).values()
        return sorted(int(meta.spec(one)["replicas"]) for one in found)

    def ceiling(self) -> int:
        """Return the maximum number of leaders, according to the least strict spec."""
        return max(map(_replicas, self.specs)) + max(limit(spec, "maxSurge") for spec in self.specs)

    def is_current(self, group: Group) -> bool:
        """Return whether a group belongs to the current LeaderWorkerSet, and not to a previous one."""
        present = {meta.uid(one) for one in self.objects.get(LEADERWORKERSETS.group_resource, {}).values()}
        return not present.isdisjoint(self.line(meta.uid(group.leader)))

    def line(self, uid: str) -> list[str]:
        """Return the UIDs of an object and all its direct and indirect controllers."""
        found = [uid]
        while found[-1] in self.owners:
            found.append(self.owners[found[-1]])
        return found

    def _mark(self, groups: Iterable[Group]) -> None:
        by_leader: dict[str, Group] = {meta.uid(group.leader): group for group in groups}
        for uids, attribute in ((self.hurt, "is_hurt"), (self.failed, "has_failed")):
            for uid in uids:
                group = by_leader.get(uid) or by_leader.get(self.owners.get(self.owners.get(uid, ""), ""))
                if group is not None:
                    setattr(group, attribute, True)

    def _note_spec(self, lws: JSONObject) -> None:
        spec = meta.spec(lws)
        if not self.specs or self.specs[-1] != spec:
            self.specs.append(spec)
        self.has_tolerated |= labels.IN_PLACE_RESTARTS in meta.annotations(lws)
        self.has_stayed |= labels.STAY_ON_NODES in meta.annotations(lws)
        self.has_rolled |= any(spec.get(name) != self.specs[0].get(name) for name in COVERED)
        self.has_leader_templates |= "leaderTemplate" in spec["leaderWorkerTemplate"]
        self.has_limited |= "maxGroupRestarts" in spec["leaderWorkerTemplate"]
        self.has_recreated |= spec["leaderWorkerTemplate"].get("restartPolicy", "") in RECREATING


def index_of(leader: JSONObject) -> Index:
    """Return the index of the leader's group, or -1 if it has no index."""
    label = meta.labels(leader).get(labels.GROUP_INDEX) or "-1"
    return label if len(label) == groupname.KEY_CHARACTERS else int(label)


def _replicas(spec: JSONObject) -> int:
    return int(spec["replicas"])


def _unavailable(spec: JSONObject) -> int:
    return max(limit(spec, "maxUnavailable"), int(not limit(spec, "maxSurge")))


def limit(spec: JSONObject, name: str) -> int:
    """Return a rollout limit. For percentages, return the least strict value."""
    rolling = (spec.get("rolloutStrategy") or {}).get("rollingUpdateConfiguration") or {}
    value = rolling.get(name) or 0
    return _replicas(spec) if isinstance(value, str) else int(value)


def has_restarted(pod: JSONObject) -> bool:
    """Return whether a container of the pod was restarted alone and with the same image (`kubelet.py`)."""
    statuses = meta.status(pod).get("containerStatuses") or ()
    return any(one.get("restartCount", 0) > excused(one) for one in statuses)


def restarts_in_place(pod: JSONObject) -> int:
    """Return how often all containers restarted together, or 0 if the last restart was of another type."""
    statuses = [one for one in meta.status(pod).get("containerStatuses") or () if podstate.was_restarted_with_all(one)]
    return max((int(one["restartCount"]) for one in statuses), default=0)


def excused(status: JSONObject) -> int:
    """Return how often a container was restarted with a new image or with all other containers.

    The count is read from the container IDs of the kubelet model.
    """
    return int(str(status.get("containerID", "")).rpartition("/")[2] or 0)


def _has_failed(pod: JSONObject) -> bool:
    return has_restarted(pod) or meta.is_deleting(pod) or meta.status(pod).get("phase") == "Failed"
