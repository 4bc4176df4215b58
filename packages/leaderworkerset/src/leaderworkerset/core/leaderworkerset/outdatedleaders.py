"""Finds outdated leaders that the StatefulSet controller does not delete in time.

Input: the leader StatefulSet with the report of its controller, the index of its groups, the budget. Output: the
groups whose leaders are deleted (`leaders_to_delete`), and the revision from which the StatefulSet must create all
leaders (`recreate_revision`).

| leader | reason |
|---|---|
| released, and the budget permits it | the controller would replace only one at a time (docs/adr/0004-max-unavailable.md) |
| broken, of an abandoned revision | it returns from another revision (docs/adr/0004-max-unavailable.md) |
| broken, of an older revision | broken groups are replaced first, whatever their index (docs/adr/0030) |
"""

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from msgspec import Struct

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.core.leaderworkerset import groupindex
from leaderworkerset.core.leaderworkerset.budget import Budget
from leaderworkerset.core.leaderworkerset.groupindex import GroupIndex, indexes_below
from leaderworkerset.core.leaderworkerset.groupstate import creates_latest_revision, has_one_revision


class StatefulSetProgress(NamedTuple):
    """The current leader StatefulSet. `replicas_annotation` is the original value of its `replicas` annotation.

    `is_behind` is true if its controller has reported a status, but has not observed the latest generation.
    """

    replicas: int
    partition: int
    replicas_annotation: str
    revision: str = ""
    is_behind: bool = False


def read_progress(statefulset: JSONObject) -> StatefulSetProgress:
    """Return the revision key and the rollout progress of a leader StatefulSet."""
    metadata, spec, status = statefulset["metadata"], statefulset["spec"], statefulset.get("status") or {}
    rolling, observed = (spec.get("updateStrategy") or {}).get("rollingUpdate") or {}, status.get("observedGeneration")
    return StatefulSetProgress(
        replicas=int(spec.get("replicas", 1)),
        partition=int(rolling.get("partition") or 0),
        replicas_annotation=(metadata.get("annotations") or {}).get(labels.REPLICAS, ""),
        revision=(metadata.get("labels") or {}).get(labels.TEMPLATE_REVISION_HASH, ""),
        is_behind=bool(observed) and observed != (metadata.get("generation") or 0),
    )


class RolloutLeaders(Struct, frozen=True):
    """The leader StatefulSet with its available and outdated groups.

    The leaders of outdated groups have neither the key nor the StatefulSet's update revision.
    """

    statefulset: JSONObject
    group_summary: GroupIndex
    limits: Budget
    key: str
    current: StatefulSetProgress
    available: int
    outdated: int

    @classmethod
    def from_statefulset(
        cls, statefulset: JSONObject, group_summary: GroupIndex, limits: Budget, *, size: int, key: str
    ) -> "RolloutLeaders":
        """Return the leaders of groups with the spec size `size`."""
        existing = retained_groups(statefulset, group_summary)
        outdated = (
            existing
            & ~group_summary.leaders.get(key, 0)
            & ~_groups_with_revision(statefulset, group_summary, "updateRevision")
        )
        available = existing & group_summary.available_groups(size)
        return cls(statefulset, group_summary, limits, key, read_progress(statefulset), available, outdated)


def decide(
    statefulset: JSONObject, group_summary: GroupIndex, limits: Budget, *, size: int, key: str
) -> tuple[Sequence[int], str]:
    """Return the groups whose leaders are deleted, and the revision for all new leaders."""
    leaders = RolloutLeaders.from_statefulset(statefulset, group_summary, limits, size=size, key=key)
    return leaders_to_delete(leaders), recreate_revision(leaders)


def leaders_to_delete(leaders: RolloutLeaders) -> list[int]:
    """Return the groups whose outdated leaders must be deleted, with broken groups first.

    An available group is only replaced while more than `replicas - unavailable` are available.
    """
    statefulset, group_summary, limits = leaders.statefulset, leaders.group_summary, leaders.limits
    if not is_observed(statefulset):  # a controller that is not running does not recreate pods
        return []
    left_behind = (_broken_groups_to_recreate(leaders) if leaders.outdated else 0) | _unresizable_groups(
        statefulset, group_summary, limits
    )
    exhausted = indexes_below(
        group_summary.exhausted & ~group_summary.leaders.get(leaders.key, 0), leaders.current.replicas
    )
    available = leaders.available
    rolled = leaders.outdated & ~indexes_below(leaders.outdated, leaders.current.partition)
    if not ignores_max_unavailable(statefulset) and not exhausted:
        # A StatefulSet controller with maxUnavailable support counts broken leaders, and replaces none if the limit
        # is reached.
        return [*groupindex.descending_indexes(left_behind | rolled & ~group_summary.leader_ready)]
    spare = max(available.bit_count() - (limits.replicas - limits.unavailable - exhausted.bit_count()), 0)
    return [
        *groupindex.descending_indexes(rolled & ~available | left_behind),
        *islice(groupindex.descending_indexes(rolled & available), spare),
    ]


def recreate_revision(leaders: RolloutLeaders) -> str:
    """Return the latest revision if all leaders must be created from it. Otherwise, return an empty string.

    A leader below the partition is recreated from the current revision. To replace broken groups first, the latest
    revision must become the current one (docs/adr/0030). If the user set a partition, the older revision is retained.
    """
    statefulset = leaders.statefulset
    if not leaders.outdated or leaders.limits.partition or not is_observed(statefulset):
        return ""
    is_due = not has_one_revision(statefulset) and _broken_groups(leaders) and _remaining_budget(leaders)
    return str(meta.status(statefulset)["updateRevision"]) if is_due else ""


def _broken_groups_to_recreate(leaders: RolloutLeaders) -> int:
    """Return broken groups below the partition that would be recreated from a different StatefulSet revision.

    If all leaders are created from the latest revision, groups are replaced up to the limit. Otherwise, only leaders of
    an abandoned revision are changed by a recreation. All wait until the controller has observed a renewal.
    """
    broken = _broken_groups(leaders)
    if not broken:
        return 0
    stranded = broken & leaders.group_summary.stranded
    if creates_latest_revision(leaders.statefulset):
        return stranded | sum(
            1 << index
            for index in islice(groupindex.descending_indexes(broken & ~stranded), _remaining_budget(leaders))
        )
    if has_one_revision(leaders.statefulset):
        return 0
    if recreate_revision(leaders):
        return stranded
    return stranded | broken & ~_groups_with_revision(leaders.statefulset, leaders.group_summary, "currentRevision")


def _broken_groups(leaders: RolloutLeaders) -> int:
    """Return outdated and unready groups below the partition, which must be replaced out of order.

    Groups below the user's partition stay unchanged. The highest groups also stay unchanged, because the rollout
    reaches them first, unless all leaders are created from the latest revision.
    """
    group_summary, candidates = leaders.group_summary, indexes_below(leaders.outdated, leaders.current.partition)
    if not has_one_revision(leaders.statefulset):
        candidates = indexes_below(candidates, (leaders.outdated & leaders.available).bit_length())
    lost = ~leaders.available & ~group_summary.gated & ~group_summary.updating & ~group_summary.exhausted
    broken = candidates & (lost | group_summary.stranded)
    return broken & ~indexes_below(broken, leaders.limits.partition)


def _remaining_budget(leaders: RolloutLeaders) -> int:
    """Return the number of additional groups, including surge groups, that can be updated while unready."""
    limits, now = leaders.limits, leaders.current
    staying = ~leaders.group_summary.updating & (leaders.available | indexes_below(leaders.outdated, now.partition))
    changing = now.replicas - indexes_below(staying, now.replicas).bit_count()
    return max(limits.unavailable + now.replicas - limits.replicas - changing, 0)


def _unresizable_groups(statefulset: JSONObject, group_summary: GroupIndex, limits: Budget) -> int:
    """Return groups that cannot be resized above the StatefulSet's partition, or below the user's partition."""
    refused = retained_groups(statefulset, group_summary) & group_summary.rejected
    return refused & ~indexes_below(refused, read_progress(statefulset).partition) | indexes_below(
        refused, limits.partition
    )


def ignores_max_unavailable(statefulset: JSONObject) -> bool:
    """Return whether the StatefulSet controller ignores `maxUnavailable`, as by default before 1.37."""
    strategy = meta.spec(statefulset).get("updateStrategy") or {}
    return is_observed(statefulset) and "maxUnavailable" not in (strategy.get("rollingUpdate") or {})


def is_rolling(statefulset: JSONObject, group_summary: GroupIndex) -> bool:
    """Return whether the StatefulSet controller can now delete leaders for an update."""
    outdated = retained_groups(statefulset, group_summary) & ~_groups_with_revision(
        statefulset, group_summary, "updateRevision"
    )
    return not is_observed(statefulset) or bool(outdated >> read_progress(statefulset).partition)


def retained_groups(statefulset: JSONObject, group_summary: GroupIndex) -> int:
    """Return the groups whose leaders belong to the StatefulSet and will not be deleted by it."""
    return indexes_below(group_summary.members & ~group_summary.deleting, read_progress(statefulset).replicas)


def is_observed(statefulset: JSONObject) -> bool:
    """Return whether the StatefulSet controller has observed the latest generation."""
    return meta.is_observed(statefulset) and bool(meta.status(statefulset).get("updateRevision"))


def set_current_revision(statefulset: JSONObject, revision: str) -> JSONObject:
    """Return a status with a new current revision and a count that the controller must correct."""
    status = meta.status(statefulset)
    is_none_counted = bool(status.get("updatedReplicas")) or not status.get("replicas")
    return {"currentRevision": revision, "currentReplicas": 0 if is_none_counted else 1}


def _groups_with_revision(statefulset: JSONObject, group_summary: GroupIndex, which: str) -> int:
    """Return the groups with leaders from this StatefulSet revision."""
    return group_summary.statefulset_revisions.get(meta.status(statefulset).get(which) or "", 0)
