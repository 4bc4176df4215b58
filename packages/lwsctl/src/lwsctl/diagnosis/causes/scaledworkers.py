"""Finds worker StatefulSets that a user scaled. The manager sets their replicas only at creation. Pure."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from kuberuntime.objects import decimals, meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import STATEFULSETS
from leaderworkerset.api import groupname, labels
from lwsctl.diagnosis.finding import Finding, cause
from lwsctl.diagnosis.observed import Observed
from lwsctl.model.diagnosis import Subject
from lwsctl.model.groups import Group
from lwsctl.model.leaderworkerset import View
from lwsctl.views.wording import format_count


class ScaledGroup(Struct, frozen=True):
    """A group with its leader, its worker StatefulSet, and the current and required number of workers."""

    group: Group
    leader: str
    statefulset: str
    workers: int
    needed: int


def scaled_groups(view: View, statefulsets: Sequence[JSONObject] = ()) -> Iterator[ScaledGroup]:
    """Yield the groups whose number of worker pods or StatefulSet replicas does not match the group size."""
    size = int((meta.spec(view.object).get("leaderWorkerTemplate") or {}).get("size", 1))
    for group in view.groups:
        leader = group.leader.object if group.leader else None
        if leader is None or meta.is_deleting(leader) or group.is_over:
            continue
        own = decimals.natural(meta.annotations(leader).get(labels.SIZE, "")) or size
        surplus = [
            rank for rank in group.ranks if rank.index >= own and rank.object and not meta.is_deleting(rank.object)
        ]
        workers = groupname.find_workers(leader, statefulsets)
        replicas = own - 1 + len(surplus) if workers is None else int(meta.spec(workers).get("replicas", 1))
        if replicas != own - 1 and not (workers is not None and meta.is_deleting(workers)):
            yield ScaledGroup(group, meta.name(leader), groupname.hostname(leader), replicas, own - 1)


@cause(
    code="LWS-E100",
    title="a worker StatefulSet was scaled",
    meaning=(
        "The number of replicas of a worker StatefulSet does not match the group size. The manager sets this number only when it creates the StatefulSet."
    ),
    remedy="Restore the number of replicas of the StatefulSet, or restart the group. To change the group size, set `size` in the LeaderWorkerSet.",
)
def find_scaled_workers(observed: Observed) -> Finding | None:
    """Find a worker StatefulSet whose replicas do not match the group size."""
    view = observed.view
    for scaled in scaled_groups(view, observed.get(STATEFULSETS)):
        return Finding(
            subject=Subject(kind="StatefulSet", name=scaled.statefulset, group=scaled.group.name),
            sentence=(
                f"StatefulSet {scaled.statefulset} was scaled to {format_count(scaled.workers, 'replica')}, but group {scaled.group.name} of {view.name} needs "
                f"{scaled.needed}"
            ),
            evidence=(f"size {scaled.needed + 1} of leader {scaled.leader}",),
            steps=(
                observed.kubectl(f"scale statefulset {scaled.statefulset} --replicas={scaled.needed}"),
                f"or restart the group: {observed.lws(f'restart {view.name}/{scaled.group.name}')}",
            ),
        )
    return None
