"""Predicts which groups are deleted and which unready groups remain if a LeaderWorkerSet is scaled down. Pure.

A StatefulSet keeps the lowest indexes. Therefore, groups with the highest indexes are deleted, regardless of their
state. With random keys, the ReplicaSet deletes unready leaders first, and a leader is ready when its workers are
(N-HASH-6, N-HASH-25).
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from kuberuntime.objects import meta
from leaderworkerset.api import groupname
from leaderworkerset.api.groupname import GroupName
from lwsctl.model.groups import Group
from lwsctl.model.leaderworkerset import View
from lwsctl.views.wording import format_count, format_groups


class ScaleDown(Struct, frozen=True, kw_only=True):
    """The groups that are certainly deleted, the unready groups among them, and the remaining unready groups.

    `other_count` is the number of ready groups that are also deleted. If it is negative, this number of groups in `deleted`
    remains. Kubernetes selects these groups.
    """

    deleted: tuple[GroupName, ...]
    unready_deleted: tuple[GroupName, ...]
    unready_remaining: tuple[GroupName, ...] = ()
    exhausted_remaining: tuple[GroupName, ...] = ()
    other_count: int = 0


def forecast(view: View, replicas: int) -> ScaleDown:
    """Return the groups that are deleted if the set is scaled down to this number of groups."""
    live = [group for group in view.groups if not _is_ending(group)]
    if groupname.uses_random_keys(view.object):
        broken = _names(group for group in live if not group.is_ready)
        return ScaleDown(deleted=broken, unready_deleted=broken, other_count=max(len(live) - replicas, 0) - len(broken))
    going = [group for group in live if group.index >= replicas]
    staying = [group for group in live if group.index < replicas and not group.is_ready]
    return ScaleDown(
        deleted=_names(going),
        unready_deleted=_names(group for group in going if not group.is_ready),
        unready_remaining=_names(group for group in staying if not group.is_over),
        exhausted_remaining=_names(group for group in staying if group.is_over),
    )


def lines(name: str, scale_down: ScaleDown) -> Iterator[str]:
    """Yield sentences about the deleted and remaining groups."""
    if scale_down.other_count < 0:
        count = len(scale_down.deleted) + scale_down.other_count
        yield f"{name}: {count} of {format_groups(scale_down.deleted)} {_verb(count)}, because Kubernetes deletes unready groups first"
        return
    ready = [group for group in scale_down.deleted if group not in scale_down.unready_deleted]
    if scale_down.unready_deleted:
        yield f"{name}: {format_groups(scale_down.unready_deleted)} {_verb(len(scale_down.unready_deleted))} (not ready)"
    if ready:
        yield f"{name}: {format_groups(ready)} {_verb(len(ready))} although ready, because groups with an index are deleted in descending order"
    if scale_down.other_count > 0:
        yield f"{name}: {format_count(scale_down.other_count, 'ready group')} {_verb(scale_down.other_count)}"
    for stays, what in ((scale_down.unready_remaining, ""), (scale_down.exhausted_remaining, ", and not recreated")):
        if stays:
            verb = "remain" if len(stays) > 1 else "remains"
            yield f"{name}: {format_groups(stays)} {verb} (not ready{what})"


def _is_ending(group: Group) -> bool:
    """Return whether the group is terminating or has no leader."""
    leader = group.leader.object if group.leader else None
    return leader is None or (meta.is_deleting(leader) and not group.is_over)


def _names(groups: Sequence[Group] | Iterator[Group]) -> tuple[GroupName, ...]:
    return tuple(group.name for group in groups)


def _verb(count: int) -> str:
    return "is deleted" if count == 1 else "are deleted"
