"""The view of a LeaderWorkerSet by groups and ranks: what `lws get`, `lws wait` and `lws run` show.

In: the objects of one LeaderWorkerSet as the API has them. Out: frozen values. Pure.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from kuberuntime.objects import decimals, meta, podstate
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.api.leaderworkerset import AWAITS_LEADER, StartupPolicy
from leaderworkerset.views.admission import held_back
from leaderworkerset.views.deaths import Death

MISSING: Final = "Missing"
"""The state of a rank without a pod."""

NOT_CREATED: Final = "not created yet"
"""Why there is no pod, if no other reason is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """One rank of a group. Without a pod, `state` is `Missing` and `why` says what it waits for."""

    group: int
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
    deaths: tuple[Death, ...] = ()
    """The runs of its containers that failed and may still matter, or that made its group be recreated again."""
    object: JSONObject | None = field(default=None, repr=False)

    @property
    def place(self) -> str:
        """Return `group/rank`."""
        return f"{self.group}/{self.index}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recreations:
    """The recreations of a group in a row: the number of the last one, and the pod whose failure caused it.

    While `is_waiting`, the last one is not done yet: it is due at `due`. If `is_exhausted`, it will not be done.
    `failure` is the description of the pod's failure.
    """

    count: int
    failed_pod: str
    due: datetime
    is_waiting: bool = False
    is_exhausted: bool = False
    failure: str = ""

    @property
    def done(self) -> int:
        """Return how many are done."""
        return self.count - 1 if self.is_waiting or self.is_exhausted else self.count


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One leader and its workers; `ranks` has every rank up to the group's size, with or without a pod."""

    index: int
    ranks: tuple[Rank, ...]
    revision: str = ""
    recreations: Recreations | None = None

    @property
    def is_ready(self) -> bool:
        """Return whether every rank is ready."""
        return all(rank.is_ready for rank in self.ranks)

    @property
    def ready_ranks(self) -> int:
        """Return how many ranks are ready."""
        return sum(rank.is_ready for rank in self.ranks)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A LeaderWorkerSet and its groups. The numbers are those of its status (contract 1.3)."""

    name: str
    namespace: str
    ready: int
    desired: int
    up_to_date: int
    created: str
    groups: tuple[Group, ...]
    object: JSONObject = field(repr=False)

    @property
    def is_ready(self) -> bool:
        """Return whether the newest spec is applied and every group is ready: by its status, and by its pods."""
        observed = meta.is_observed(self.object)
        available = observed and meta.is_condition_true(self.object, "Available") and self.ready >= self.desired
        return available and all(group.is_ready for group in self.groups if group.index < self.desired)

    @property
    def is_updating(self) -> bool:
        """Return whether a rollout is in progress."""
        return meta.is_condition_true(self.object, "UpdateInProgress")

    @property
    def pods(self) -> list[JSONObject]:
        """Return the existing pods, by group and rank."""
        return [rank.object for group in self.groups for rank in group.ranks if rank.object is not None]


def view(lws: JSONObject, pods: Iterable[JSONObject]) -> View:
    """Arrange the pods of one LeaderWorkerSet by group and rank."""
    spec, status = meta.spec(lws), meta.status(lws)
    template = spec.get("leaderWorkerTemplate") or {}
    size = int(template.get("size", 1))
    desired = int(spec.get("replicas", 1))
    by_group: dict[int, dict[int, JSONObject]] = {index: {} for index in range(desired)}
    for pod in pods:
        place = place_of(pod)
        if place is not None:
            by_group.setdefault(place[0], {})[place[1]] = pod
    waits_for_leader = spec.get("startupPolicy") == StartupPolicy.LEADER_READY
    groups = (
        _group(meta.name(lws), index, _size_of(members, size), members, waits_for_leader)
        for index, members in sorted(by_group.items())
    )
    return View(
        name=meta.name(lws),
        namespace=meta.namespace(lws),
        ready=int(status.get("readyReplicas", 0)),
        desired=desired,
        up_to_date=int(status.get("updatedReplicas", 0)),
        created=meta.metadata(lws).get("creationTimestamp", ""),
        groups=tuple(groups),
        object=lws,
    )


def place_of(pod: JSONObject) -> tuple[int, int] | None:
    """Return group and rank of a pod by its labels, None where it has none."""
    own = meta.labels(pod)
    group, rank = (decimals.natural(own.get(name, "")) for name in (labels.GROUP_INDEX, labels.WORKER_INDEX))
    return None if group is None or rank is None else (group, rank)


def _size_of(members: dict[int, JSONObject], size: int) -> int:
    """Return the size that the group was created with; during a rollout it may differ from the spec's."""
    leader = members.get(0)
    own = decimals.natural(meta.annotations(leader).get(labels.SIZE, "")) if leader else None
    return size if own is None else own


def _group(name: str, index: int, size: int, members: dict[int, JSONObject], waits_for_leader: bool) -> Group:  # noqa: FBT001
    leader = members.get(0)
    leader_is_ready = leader is not None and meta.is_condition_true(leader, "Ready")
    held = waits_for_leader and not leader_is_ready
    ranks = tuple(
        rank_of(members[number]) if number in members else _missing(name, index, number, held=held)
        for number in sorted({*range(size), *members})
    )
    revision = meta.labels(leader).get(labels.TEMPLATE_REVISION_HASH, "") if leader else ""
    return Group(index=index, ranks=ranks, revision=revision)


def rank_of(pod: JSONObject) -> Rank:
    """Describe one pod of a group."""
    place = place_of(pod) or (-1, -1)
    status = meta.status(pod)
    return Rank(
        group=place[0],
        index=place[1],
        pod=meta.name(pod),
        state=podstate.state(pod),
        why=held_back(pod) or podstate.why(pod),
        is_ready=meta.is_condition_true(pod, "Ready") and not meta.is_deleting(pod),
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


def _missing(name: str, group: int, rank: int, *, held: bool) -> Rank:
    pod = f"{name}-{group}" if rank == 0 else f"{name}-{group}-{rank}"
    why = AWAITS_LEADER if held and rank else NOT_CREATED
    return Rank(group=group, index=rank, pod=pod, state=MISSING, why=why)
