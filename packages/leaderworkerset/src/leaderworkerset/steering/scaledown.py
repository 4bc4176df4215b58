"""Which groups are removed when a LeaderWorkerSet is scaled down, and which unready groups remain. Pure.

A StatefulSet keeps the lowest indexes, so with indexes the highest groups are removed, whatever their state. With
random keys, the ReplicaSet deletes unready leaders first, and a leader is ready when its workers are (N-HASH-6,
N-HASH-25).
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from kuberuntime.objects import meta
from leaderworkerset.api import groupname
from leaderworkerset.views.groups import Group, GroupName, View, groups_named
from leaderworkerset.views.wording import counted


class ScaleDown(Struct, frozen=True, kw_only=True):
    """The groups that are certainly removed, the unready ones among them, and the remaining unready groups.

    `others` is the number of further ready groups that are removed. If it is negative, that many of `going` remain.
    Kubernetes chooses which.
    """

    going: tuple[GroupName, ...]
    broken: tuple[GroupName, ...]
    staying: tuple[GroupName, ...] = ()
    over: tuple[GroupName, ...] = ()
    others: int = 0


def foresee(view: View, replicas: int) -> ScaleDown:
    """Return the removed groups if the set is scaled down to this number."""
    live = [group for group in view.groups if not _is_ending(group)]
    if groupname.is_hash_set(view.object):
        broken = _names(group for group in live if not group.is_ready)
        return ScaleDown(going=broken, broken=broken, others=max(len(live) - replicas, 0) - len(broken))
    going = [group for group in live if group.index >= replicas]
    staying = [group for group in live if group.index < replicas and not group.is_ready]
    return ScaleDown(
        going=_names(going),
        broken=_names(group for group in going if not group.is_ready),
        staying=_names(group for group in staying if not group.is_over),
        over=_names(group for group in staying if group.is_over),
    )


def lines(name: str, found: ScaleDown) -> Iterator[str]:
    """Yield the removed and the remaining groups, as sentences."""
    if found.others < 0:
        count = len(found.going) + found.others
        yield f"{name}: {count} of {groups_named(found.going)} {_go(count)}: not ready, and Kubernetes deletes such first"
        return
    ready = [group for group in found.going if group not in found.broken]
    if found.broken:
        yield f"{name}: {groups_named(found.broken)} {_go(len(found.broken))}: not ready"
    if ready:
        yield f"{name}: {groups_named(ready)} {_go(len(ready))}, ready: groups with an index go from the highest"
    if found.others > 0:
        yield f"{name}: {counted(found.others, 'group')} that {_is(found.others)} ready {_go(found.others)}"
    for stays, what in ((found.staying, ""), (found.over, ", and not recreated")):
        if stays:
            verb = "stay" if len(stays) > 1 else "stays"
            yield f"{name}: {groups_named(stays)} {verb}, not ready{what}"


def _is_ending(group: Group) -> bool:
    """Return whether the group is already ending, or has no leader yet."""
    leader = group.leader.object if group.leader else None
    return leader is None or (meta.is_deleting(leader) and not group.is_over)


def _names(groups: Sequence[Group] | Iterator[Group]) -> tuple[GroupName, ...]:
    return tuple(group.name for group in groups)


def _go(count: int) -> str:
    return "goes" if count == 1 else "go"


def _is(count: int) -> str:
    return "is" if count == 1 else "are"
