"""The view of a LeaderWorkerSet by groups and ranks, which `lws get`, `lws wait` and `lws run` use.

In: the API objects of one LeaderWorkerSet. Out: immutable values. Pure.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.objects import decimals, meta, podstate
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.terminations import ContainerFailure
from kuberuntime.texts import errorboundary
from kuberuntime.texts.masking import masked
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.conditions import AVAILABLE, COMPLETE, UPDATE_IN_PROGRESS
from leaderworkerset.api.groupname import GroupEnd, GroupName, place_of
from leaderworkerset.api.policytypes import AWAITING_LEADER, AWAITS_LEADER
from leaderworkerset.api.progressannotations import Hang, Progress, hang_of, of_annotation
from lwsctl.views import printedview
from lwsctl.views.admission import held_back
from lwsctl.views.health.failurehistory import Crashes, Recreations, Startup

MISSING: Final = "Missing"
"""The state of a rank without a pod."""

COMPLETED: Final = "Completed"
"""The state of a rank that exited with code 0, and of all ranks in a completed group."""

LISTED: Final = 10_000
"""The maximum number of listed ranks in one group, and of listed groups without a pod."""

UNREADABLE: Final = "Unreadable"
"""The state of a rank whose pod cannot be parsed."""

NOT_CREATED: Final = "not created yet"
"""The default reason if there is no pod."""


class Rank(Struct, frozen=True, kw_only=True):
    """A rank in a group. If there is no pod, `state` is `Missing` and `why` explains what the rank waits for."""

    group: GroupName
    index: int
    pod: str
    state: str
    why: str = ""
    is_ready: bool = False
    restarts: int = 0
    node: str = ""
    address: str = ""
    created: str = ""
    uid: str = ""
    is_stub: bool = False
    deaths: tuple[ContainerFailure, ...] = ()
    """The failed container runs that are still relevant, or that caused a recreation of the group."""
    startup: Startup | None = None
    """The start of the rank, if it was never ready and is within its time limit."""
    object: JSONObject | None = None

    @property
    def place(self) -> str:
        """Return `group/rank`."""
        return f"{self.group}/{self.index}"


class Group(Struct, frozen=True, kw_only=True):
    """A leader and its workers. `ranks` has every rank up to the group size, with or without a pod.

    `index` is a sequence number. With random keys, the youngest group is first, and groups with a terminating leader
    are last.
    """

    index: int
    ranks: tuple[Rank, ...]
    revision: str = ""
    recreations: Recreations | None = None
    crashes: Crashes | None = None
    key: str = ""

    @property
    def name(self) -> GroupName:
        """Return the name of the group."""
        return self.key or self.index

    @property
    def is_ready(self) -> bool:
        """Return whether every rank is ready and no recreation is pending."""
        return not self.is_condemned and all(rank.is_ready for rank in self.ranks)

    @property
    def is_condemned(self) -> bool:
        """Return whether the group failed, and its pods exist only until it is recreated or recovered."""
        return self.recreations is not None and (self.recreations.is_waiting or self.recreations.is_exhausted)

    @property
    def is_exhausted(self) -> bool:
        """Return whether the group has no remaining restarts and was terminated. Its pods are kept for diagnosis."""
        return groupname.is_exhausted(self._leader)

    @property
    def is_over(self) -> bool:
        """Return whether the group has ended permanently, because it is exhausted or has completed."""
        return groupname.is_over(self._leader)

    @property
    def end(self) -> GroupEnd | None:
        """Return how the group ended, if it completed or reached its deadline."""
        return groupname.end_of(self._leader)

    @property
    def progress(self) -> Progress | None:
        """Return the last progress report of the leader, or None if there is none."""
        return of_annotation(meta.annotations(self._leader).get(labels.PROGRESS, ""))

    @property
    def hang(self) -> Hang | None:
        """Return details about the group's hang, or None if it makes progress or is not monitored."""
        return None if self.end is not None else hang_of(meta.annotations(self._leader).get(labels.HANG, ""))

    @property
    def leader(self) -> Rank | None:
        """Return the first rank, with or without a pod, or None if the view does not contain it."""
        return next((rank for rank in self.ranks if rank.index == 0), None)

    @property
    def _leader(self) -> JSONObject:
        return (self.leader.object if self.leader else None) or {}

    @property
    def ready_ranks(self) -> int:
        """Return how many ranks are ready."""
        return sum(rank.is_ready for rank in self.ranks)


class View(Struct, frozen=True, kw_only=True):
    """A LeaderWorkerSet and its groups. The replica counts come from its status (contract 1.3).

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

    def __repr__(self) -> str:
        return f"View({self._summary})"

    def __str__(self) -> str:
        return printedview.text(self._summary, (rank for group in self.groups for rank in group.ranks))

    @property
    def _summary(self) -> str:
        return f"{self.namespace}/{self.name}: {self.ready} of {self.desired} groups ready"

    @property
    def key(self) -> ObjectKey:
        """Return the namespace and name."""
        return ObjectKey(self.namespace, self.name)

    @property
    def is_ready(self) -> bool:
        """Return whether the latest spec is applied and every group is ready, according to the status and the pods."""
        observed = meta.is_observed(self.object)
        available = observed and meta.is_condition_true(self.object, AVAILABLE.type) and self.ready >= self.desired
        return (
            available and not self.more and all(group.is_ready for group in self.groups if group.index < self.desired)
        )

    @property
    def updated(self) -> int:
        """Return how many desired groups have the latest revision. The status also counts surge groups."""
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
    def is_complete(self) -> bool:
        """Return whether the set ran to completion with the latest spec, according to its status."""
        return meta.is_observed(self.object) and meta.is_condition_true(self.object, COMPLETE.type)

    @property
    def ready_by_pods(self) -> int:
        """Return how many desired groups are ready according to their pods, which change before the status."""
        return sum(group.is_ready for group in self.groups if group.index < self.desired)

    @property
    def is_updating(self) -> bool:
        """Return whether a rollout is in progress."""
        return meta.is_condition_true(self.object, UPDATE_IN_PROGRESS.type)

    @property
    def pods(self) -> list[JSONObject]:
        """Return the existing pods, by group and rank."""
        return [rank.object for group in self.groups for rank in group.ranks if rank.object is not None]


def view(lws: JSONObject, pods: Iterable[JSONObject], describe: Callable[[JSONObject], Rank] | None = None) -> View:
    """Arrange the pods of a set by group and rank. `describe` converts a pod to a rank, like `rank_of`.

    A set that cannot be parsed has one rank, whose reason is the error.
    """
    return errorboundary.attempt(partial(_view, lws, pods, describe), partial(_unreadable_view, lws))


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


def _view(lws: JSONObject, pods: Iterable[JSONObject], describe: Callable[[JSONObject], Rank] | None) -> View:
    spec, status = meta.spec(lws), meta.status(lws)
    template = spec.get("leaderWorkerTemplate") or {}
    size = int(template.get("size", 1))
    desired = int(spec.get("replicas", 1))
    by_name: dict[GroupName, dict[int, JSONObject]] = {}
    for pod in pods:
        place = place_of(pod)
        if place is not None:
            by_name.setdefault(place[0], {})[place[1]] = pod
    by_group = _numbered(by_name, desired)
    shortage = desired - sum(0 <= index < desired for index in by_group)
    listed_count = 0 if groupname.is_hash_set(lws) else min(shortage, max(LISTED // size, 1))
    by_group |= {
        index: (index, {}) for index in islice((at for at in range(desired) if at not in by_group), listed_count)
    }
    waits_for_leader = spec.get("startupPolicy") in AWAITING_LEADER
    rank = describe or rank_of
    all_members = (_Members(index, *members, describe=rank) for index, members in sorted(by_group.items()))
    groups = (_group(lws, members, size, waits_for_leader) for members in all_members)
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
    )


def order_of(pod: JSONObject) -> tuple[int, str, int]:
    """Return the sort key for the pods of one LeaderWorkerSet, by group and rank."""
    group, rank = place_of(pod) or (-1, -1)
    return (group, "", rank) if isinstance(group, int) else (0, group, rank)


class _Members(Struct, frozen=True):
    """The pods of a group, by rank."""

    index: int
    name: GroupName
    pods: dict[int, JSONObject]
    describe: Callable[[JSONObject], Rank]

    @property
    def leader(self) -> JSONObject | None:
        return self.pods.get(0)

    @property
    def ends(self) -> bool:
        """Return whether the pods will not be replaced, because the group's random key is lost with its leader."""
        return isinstance(self.name, str) and (self.leader is None or meta.is_deleting(self.leader))


def _numbered(
    by_name: dict[GroupName, dict[int, JSONObject]], desired: int
) -> dict[int, tuple[GroupName, dict[int, JSONObject]]]:
    """Return the groups with their numbers, by name, or the youngest first and terminating groups last."""
    numbered: dict[int, tuple[GroupName, dict[int, JSONObject]]] = {
        name: (name, pods) for name, pods in by_name.items() if isinstance(name, int)
    }
    keyed = [_Members(-1, name, pods, rank_of) for name, pods in by_name.items() if isinstance(name, str)]
    living = sorted((members for members in keyed if not members.ends), key=_age, reverse=True)
    ending = sorted((members for members in keyed if members.ends), key=lambda members: str(members.name))
    numbered |= {index: (members.name, members.pods) for index, members in enumerate(living)}
    first = max(desired, len(living))
    return numbered | {index: (members.name, members.pods) for index, members in enumerate(ending, first)}


def _age(members: _Members) -> tuple[str, str]:
    return meta.created(members.leader or {}), str(members.name)


def _size_of(members: _Members, size: int) -> int:
    """Return the original group size, at most `LISTED`. During a rollout, it may differ from the spec.

    The limit is necessary because users with write access to pods can set any number in the annotation.
    """
    if members.ends:
        return 0
    own = decimals.natural(meta.annotations(members.leader).get(labels.SIZE, "")) if members.leader else None
    return min(size if own is None else own, LISTED)


def _group(lws: JSONObject, members: _Members, size: int, waits_for_leader: bool) -> Group:  # noqa: FBT001
    leader = members.leader
    condition = "ContainersReady" if leader is not None and groupname.is_hash(leader) else "Ready"
    is_held = waits_for_leader and not (leader is not None and meta.is_condition_true(leader, condition))
    ranks = tuple(
        members.describe(members.pods[number])
        if number in members.pods
        else _missing(lws, members, number, is_held=is_held)
        for number in sorted({*range(_size_of(members, size)), *members.pods})
    )
    if leader is not None and groupname.end_of(leader) is GroupEnd.COMPLETE:
        ranks = tuple(replace(rank, state=COMPLETED, why="", is_ready=False) for rank in ranks)
    revision = groupname.revision(leader) if leader else ""
    key = members.name if isinstance(members.name, str) else ""
    return Group(index=members.index, key=key, ranks=ranks, revision=revision)


def rank_of(pod: JSONObject) -> Rank:
    """Convert a pod of a group to a rank. If the pod cannot be parsed, the reason is the error."""
    return errorboundary.attempt(partial(_rank_of, pod), partial(_unreadable_rank, pod))


def _unreadable_rank(pod: JSONObject, error: str) -> Rank:
    group, index = place_of(pod) or (-1, -1)
    return Rank(group=group, index=index, pod=meta.name(pod), state=UNREADABLE, why=error, uid=meta.uid(pod))


def _rank_of(pod: JSONObject) -> Rank:
    place = place_of(pod) or (-1, -1)
    status = meta.status(pod)
    return Rank(
        group=place[0],
        index=place[1],
        pod=meta.name(pod),
        state=podstate.state(pod),
        why=masked(held_back(pod) or podstate.why(pod)),
        is_ready=podstate.stays_ready(pod),
        restarts=podstate.restarts(pod),
        node=meta.spec(pod).get("nodeName", ""),
        address=status.get("podIP", ""),
        created=meta.metadata(pod).get("creationTimestamp", ""),
        uid=meta.metadata(pod).get("uid", ""),
        is_stub=any(
            container.get("imageID", "").startswith("stub://") for container in status.get("containerStatuses") or []
        ),
        object=pod,
    )


def _missing(lws: JSONObject, members: _Members, rank: int, *, is_held: bool) -> Rank:
    host = groupname.host(members.leader) if members.leader else f"{meta.name(lws)}-{members.name}"
    why = AWAITS_LEADER if is_held and rank else NOT_CREATED
    return Rank(group=members.name, index=rank, pod=f"{host}-{rank}" if rank else host, state=MISSING, why=why)
