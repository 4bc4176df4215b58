"""Defines the view of a LeaderWorkerSet with its groups, which all commands and pages show.

The input is the API objects of one LeaderWorkerSet. The output is immutable values. Pure.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.objects import decimals, meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.texts import errorboundary
from leaderworkerset.api import groupname, labels, runsettings
from leaderworkerset.api.conditions import AVAILABLE, COMPLETE, UPDATE_IN_PROGRESS
from leaderworkerset.api.disaggregatedset import REVISION, ROLE, SLICE
from leaderworkerset.api.groupname import GroupEnd, GroupName, group_and_rank
from leaderworkerset.api.policytypes import AWAITING_LEADER, AWAITS_LEADER
from lwsctl.model import printedview
from lwsctl.model.diagnosis import NOT_DIAGNOSED, Diagnosis
from lwsctl.model.groups import COMPLETED, MISSING, NOT_CREATED, UNREADABLE, Group, Rank, rank_of

LISTED: Final = 10_000
"""The maximum number of ranks per group and of groups without a pod that are listed."""


class View(Struct, frozen=True, kw_only=True):
    """A LeaderWorkerSet and its groups. The replica counts are from its status (contract 1.3).

    `more` is the number of groups without a pod that are omitted from `groups`, because there are too many.
    """

    name: str
    namespace: str
    ready: int
    desired: int
    up_to_date: int
    created: str
    groups: tuple[Group, ...]
    object: JSONObject
    more: int = 0
    leaders: JSONObject | None = None
    """The leader StatefulSet, or the leader Deployment for random keys, or None if it was not read."""
    diagnosis: Diagnosis = NOT_DIAGNOSED

    def __repr__(self) -> str:
        return f"View({self._summary})"

    def __str__(self) -> str:
        return printedview.render(self._summary, self.ranks)

    @property
    def _summary(self) -> str:
        return f"{self.namespace}/{self.name}: {self.ready} of {self.desired} groups ready"

    @property
    def key(self) -> ObjectKey:
        """Return the namespace and name."""
        return ObjectKey(self.namespace, self.name)

    @property
    def leaderworkersets(self) -> tuple["View", ...]:
        """Return this LeaderWorkerSet, for compatibility with the interface of a DisaggregatedSet."""
        return (self,)

    @property
    def role(self) -> str:
        """Return the role in its DisaggregatedSet."""
        return meta.labels(self.object).get(ROLE, "")

    @property
    def slice(self) -> str:
        """Return the slice in its DisaggregatedSet. If it has no slice label, it belongs to slice 0."""
        return meta.labels(self.object).get(SLICE) or "0"

    @property
    def set_revision(self) -> str:
        """Return the DisaggregatedSet revision from which it was created."""
        return meta.labels(self.object).get(REVISION, "")

    @property
    def size(self) -> int:
        """Return the number of ranks in a group according to the spec."""
        return int((meta.spec(self.object).get("leaderWorkerTemplate") or {}).get("size", 1))

    @property
    def unready(self) -> list[Rank]:
        """Return the ranks that are not ready by group."""
        return [rank for rank in self.ranks if not rank.is_ready]

    @property
    def ranks(self) -> list[Rank]:
        """Return all ranks by group."""
        return [rank for group in self.groups for rank in group.ranks]

    @property
    def is_ready(self) -> bool:
        """Return whether the latest spec is applied and all groups are ready, based on the status and pods."""
        observed = meta.is_observed(self.object)
        available = observed and meta.is_condition_true(self.object, AVAILABLE.type) and self.ready >= self.desired
        return (
            available and not self.more and all(group.is_ready for group in self.groups if group.index < self.desired)
        )

    @property
    def newest_groups(self) -> list[Group]:
        """Return the groups with the revision of the leader workload. If it was not read, return no groups."""
        revision = groupname.revision_key(self.leaders or {})
        return [group for group in self.groups if revision and group.revision == revision]

    @property
    def updated(self) -> int:
        """Return the number of desired groups at the latest revision. The status also includes surge groups."""
        surge = {group.revision for group in self.groups if group.index >= self.desired}
        if not surge:
            return self.up_to_date
        count = Counter(group.revision for group in self.groups if group.revision)
        newest = [revision for revision in count if count[revision] == self.up_to_date]
        newest = [revision for revision in newest if revision in surge] or newest
        if len(newest) != 1:
            return min(self.up_to_date, self.desired)
        return sum(group.revision == newest[0] for group in self.groups if group.index < self.desired)

    @property
    def runs_to_completion(self) -> bool:
        """Return whether the groups run to completion, according to the annotations."""
        return runsettings.read(meta.annotations(self.object)).runs_to_completion

    @property
    def is_finished(self) -> bool:
        """Return whether the set is complete, or all ranks exited with code 0 if it does not run to completion."""
        if self.runs_to_completion:
            return self.is_complete
        return len(self.groups) >= self.desired and all(rank.has_succeeded for rank in self.ranks)

    @property
    def incomplete_ranks(self) -> list[tuple[Group, Rank]]:
        """Return the ranks that did not run to completion, with their groups."""
        return [(group, rank) for group in self.groups for rank in group.ranks if not group.is_complete(rank)]

    @property
    def is_complete(self) -> bool:
        """Return whether the set ran to completion with the latest spec, according to its status."""
        return meta.is_observed(self.object) and meta.is_condition_true(self.object, COMPLETE.type)

    @property
    def completed(self) -> int:
        """Return the number of groups that ran to completion."""
        return sum(group.end is GroupEnd.COMPLETE for group in self.groups)

    @property
    def ready_by_pods(self) -> int:
        """Return the number of desired groups that are ready according to their pods. The status may be older."""
        return sum(group.is_ready for group in self.groups if group.index < self.desired)

    @property
    def is_updating(self) -> bool:
        """Return whether a rollout is in progress."""
        return meta.is_condition_true(self.object, UPDATE_IN_PROGRESS.type)

    @property
    def is_settled(self) -> bool:
        """Return whether the set is ready and all groups have the latest revision."""
        return self.is_ready and not self.is_updating

    @property
    def pods(self) -> list[JSONObject]:
        """Return the existing pods by group and rank."""
        return [rank.object for rank in self.ranks if rank.object is not None]

    def pod_template(self, *, is_leader: bool) -> JSONObject:
        """Return the pod template of the leader or of the workers of each group."""
        templates = meta.spec(self.object).get("leaderWorkerTemplate") or {}
        return (templates.get("leaderTemplate") if is_leader else None) or templates.get("workerTemplate") or {}


def views_of(
    leaderworkersets: Iterable[JSONObject],
    pods: Iterable[JSONObject],
    describe: Callable[[JSONObject], Rank] = rank_of,
) -> list[View]:
    """Return the views of LeaderWorkerSets. Each pod has the label with the name of its LeaderWorkerSet."""
    members: dict[ObjectKey, list[JSONObject]] = {}
    for pod in pods:
        members.setdefault(groupname.lws_key(pod), []).append(pod)
    return [view(lws, members.get(meta.key(lws), ()), describe) for lws in leaderworkersets]


def view(
    lws: JSONObject,
    pods: Iterable[JSONObject],
    describe: Callable[[JSONObject], Rank] = rank_of,
    leaders: JSONObject | None = None,
) -> View:
    """Arrange the pods of a set by group and rank. `describe` converts a pod to a rank, as `rank_of` does.

    A set that cannot be parsed has one rank, whose reason is the error.
    """
    return errorboundary.attempt(partial(_build_view, lws, pods, describe, leaders), partial(_unreadable_view, lws))


def _unreadable_view(lws: JSONObject, error: str) -> View:
    rank = Rank(group=0, index=0, pod=meta.name(lws), state=UNREADABLE, why=error)
    return View(
        name=meta.name(lws),
        namespace=meta.namespace(lws),
        ready=0,
        desired=1,
        up_to_date=0,
        created=meta.metadata(lws).get("creationTimestamp", ""),
        groups=(Group(index=0, ranks=(rank,)),),
        object={"metadata": meta.metadata(lws)},
    )


def _build_view(
    lws: JSONObject, pods: Iterable[JSONObject], describe: Callable[[JSONObject], Rank], leaders: JSONObject | None
) -> View:
    spec, status = meta.spec(lws), meta.status(lws)
    template = spec.get("leaderWorkerTemplate") or {}
    size = int(template.get("size", 1))
    desired = int(spec.get("replicas", 1))
    by_name: dict[GroupName, dict[int, JSONObject]] = {}
    for pod in pods:
        place = group_and_rank(pod)
        if place is not None:
            by_name.setdefault(place[0], {})[place[1]] = pod
    by_group = _number_groups(by_name, desired)
    shortage = desired - sum(0 <= index < desired for index in by_group)
    listed_count = 0 if groupname.uses_random_keys(lws) else min(shortage, max(LISTED // size, 1))
    by_group |= {
        index: (index, {}) for index in islice((at for at in range(desired) if at not in by_group), listed_count)
    }
    waits_for_leader = spec.get("startupPolicy") in AWAITING_LEADER
    all_members = (_Members(index, *members, describe=describe) for index, members in sorted(by_group.items()))
    groups = (_build_group(lws, members, size, waits_for_leader) for members in all_members)
    return View(
        name=meta.name(lws),
        namespace=meta.namespace(lws),
        ready=int(status.get("readyReplicas", 0)),
        desired=desired,
        up_to_date=int(status.get("updatedReplicas", 0)),
        created=meta.metadata(lws).get("creationTimestamp", ""),
        groups=tuple(groups),
        object=lws,
        more=shortage - listed_count,
        leaders=leaders,
    )


def sort_key(pod: JSONObject) -> tuple[int, str, int]:
    """Return the key that sorts the pods of one LeaderWorkerSet by group and rank."""
    group, rank = group_and_rank(pod) or (-1, -1)
    return (group, "", rank) if isinstance(group, int) else (0, group, rank)


class _Members(Struct, frozen=True):
    """The pods of a group by rank."""

    index: int
    name: GroupName
    pods: dict[int, JSONObject]
    describe: Callable[[JSONObject], Rank]

    @property
    def leader(self) -> JSONObject | None:
        return self.pods.get(0)

    @property
    def are_final(self) -> bool:
        """Return whether the pods will not be replaced.

        A random key of a group is lost when its leader is deleted.
        """
        return isinstance(self.name, str) and (self.leader is None or meta.is_deleting(self.leader))


def _number_groups(
    by_name: dict[GroupName, dict[int, JSONObject]], desired: int
) -> dict[int, tuple[GroupName, dict[int, JSONObject]]]:
    """Return the groups and their numbers, by name, or the latest first with terminating groups last."""
    numbered: dict[int, tuple[GroupName, dict[int, JSONObject]]] = {
        name: (name, pods) for name, pods in by_name.items() if isinstance(name, int)
    }
    keyed = [_Members(-1, name, pods, rank_of) for name, pods in by_name.items() if isinstance(name, str)]
    living = sorted((members for members in keyed if not members.are_final), key=_creation_and_age, reverse=True)
    ending = sorted((members for members in keyed if members.are_final), key=lambda members: str(members.name))
    numbered |= {index: (members.name, members.pods) for index, members in enumerate(living)}
    first = max(desired, len(living))
    return numbered | {index: (members.name, members.pods) for index, members in enumerate(ending, first)}


def _creation_and_age(members: _Members) -> tuple[str, str]:
    return meta.creation_timestamp(members.leader or {}), str(members.name)


def _group_size(members: _Members, size: int) -> int:
    """Return the original group size, limited to `LISTED`. During a rollout, it may differ from the spec.

    The limit is required because users with write access to pods can set any number in the annotation.
    """
    if members.are_final:
        return 0
    own = decimals.natural(meta.annotations(members.leader).get(labels.SIZE, "")) if members.leader else None
    return min(size if own is None else own, LISTED)


def _build_group(lws: JSONObject, members: _Members, size: int, waits_for_leader: bool) -> Group:  # noqa: FBT001
    leader = members.leader
    condition = "ContainersReady" if leader is not None and groupname.has_random_key(leader) else "Ready"
    is_held = waits_for_leader and not (leader is not None and meta.is_condition_true(leader, condition))
    ranks = tuple(
        members.describe(members.pods[number])
        if number in members.pods
        else _build_missing_rank(lws, members, number, is_held=is_held)
        for number in sorted({*range(_group_size(members, size)), *members.pods})
    )
    if leader is not None and groupname.group_result(leader) is GroupEnd.COMPLETE:
        ranks = tuple(replace(rank, state=COMPLETED, why="", is_ready=False) for rank in ranks)
    revision = groupname.revision_key(leader) if leader else ""
    key = members.name if isinstance(members.name, str) else ""
    return Group(index=members.index, key=key, ranks=ranks, revision=revision)


def _build_missing_rank(lws: JSONObject, members: _Members, rank: int, *, is_held: bool) -> Rank:
    host = groupname.hostname(members.leader) if members.leader else f"{meta.name(lws)}-{members.name}"
    why = AWAITS_LEADER if is_held and rank else NOT_CREATED
    return Rank(group=members.name, index=rank, pod=f"{host}-{rank}" if rank else host, state=MISSING, why=why)
