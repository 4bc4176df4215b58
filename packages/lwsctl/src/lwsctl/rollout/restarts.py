"""Selects the groups to restart within the limit of unavailable groups. Pure.

The input is the current groups, the UIDs of the pods to delete, and the limit. The output is the groups to restart
next. A restart is complete when a new pod has the same name and all ranks are ready.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from kuberuntime.objects import meta
from leaderworkerset.api.groupname import GroupName
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.decisions.failureevents import is_failure_active, waits_for_start
from lwsctl.model.groups import Group, Rank
from lwsctl.model.leaderworkerset import View


class RestartStep(Struct, frozen=True):
    """The ranks to delete, and the groups that are not ready again yet."""

    ranks: tuple[Rank, ...]
    unready_groups: tuple[GroupName, ...]


def pods_to_delete(view: View, names: Sequence[GroupName], rank: int | None = None) -> dict[GroupName, str]:
    """Return the UID of the pod to delete in each group, which is the leader or the named rank.

    Groups without this pod are omitted, because the pod is being created.
    """
    uids: dict[GroupName, str] = {}
    for group in view.groups:
        member = _find_rank(group, rank or 0)
        if group.name in names and member is not None and member.object is not None:
            uids[group.name] = member.uid
    return uids


def recreates_group(lws: LeaderWorkerSet, group: Group) -> bool:
    """Return whether the controller recreates the whole group if one rank's pod is deleted (R-POD-3, R-POD-5)."""
    if not is_failure_active(lws):
        return False
    pods = [rank.object for rank in group.ranks if rank.object is not None]
    has_started = len(pods) == lws.size and all(meta.status(pod).get("phase") != "Pending" for pod in pods)
    return has_started or not waits_for_start(lws)


def next_batch(view: View, old: Mapping[GroupName, str], budget: int, *, rank: int | None = None) -> RestartStep:
    """Return the next batch. It contains all unready groups immediately, and ready groups within the limit.

    Exhausted and completed groups are not counted in the limit, because they do not restart automatically.
    """
    groups = [group for group in view.groups if group.index < view.desired and not group.is_over]
    unavailable = view.more + sum(not group.is_ready for group in groups)
    ranks: list[Rank] = []
    left: list[GroupName] = []
    for group in sorted(view.groups, key=lambda group: group.index, reverse=True):
        if group.name not in old:
            if group.key and group.index < view.desired and not group.is_ready:
                left.append(group.name)  # it may replace a restarted pod
            continue
        member = _find_rank(group, rank or 0)
        is_old = member is not None and member.uid == old[group.name]
        if is_old or not group.is_ready:
            left.append(group.name)
        if member is None or not is_old or (member.object is not None and meta.is_deleting(member.object)):
            continue
        if group.is_ready and unavailable >= budget:
            continue
        unavailable += group.is_ready
        ranks.append(member)
    return RestartStep(tuple(ranks), tuple(sorted(left, key=str)))


def _find_rank(group: Group, rank: int) -> Rank | None:
    return next((member for member in group.ranks if member.index == rank), None)
