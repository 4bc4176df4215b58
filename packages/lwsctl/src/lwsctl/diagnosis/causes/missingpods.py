"""Finds pods that a StatefulSet has not created, and workers that wait until old pod names are available.

Pure.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from msgspec import Struct

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import STATEFULSETS
from leaderworkerset.api import groupname
from lwsctl.diagnosis import ranks
from lwsctl.diagnosis.causes.starts import PATIENCE
from lwsctl.diagnosis.finding import Finding, cause
from lwsctl.diagnosis.observed import Observed
from lwsctl.model.diagnosis import Subject
from lwsctl.model.groups import NOT_CREATED, Group, Rank
from lwsctl.model.health import Verdict
from lwsctl.views.wording import duration, format_count

PROMPT: Final = timedelta(seconds=5)
"""The maximum time until the StatefulSet controller creates a pod or an event about it."""


class Shortage(Struct, frozen=True):
    """A StatefulSet with missing pods.

    Contains the first missing pod, its group, and the time since the last activity.
    """

    statefulset: JSONObject
    pod: str
    group: Group
    missing: int
    age: timedelta

    @property
    def state(self) -> str:
        """Return the number of pods that the StatefulSet has created."""
        replicas = int(meta.spec(self.statefulset).get("replicas", 1))
        pods = min(int(meta.status(self.statefulset).get("replicas", 0)), replicas - self.missing)
        return f"StatefulSet {meta.name(self.statefulset)} has created {pods} of {format_count(replicas, 'pod')}"


@cause(
    code="LWS-E106",
    title="a StatefulSet has not created its pods",
    meaning="A pod has been missing for two minutes, because the StatefulSet controller has not created it. After many failures, the controller retries with long delays.",
    remedy="To trigger a reconciliation, change an annotation of the StatefulSet. To find the error, read the log of kube-controller-manager.",
)
def find_missing_pods(observed: Observed) -> Finding | None:
    """Find a StatefulSet with missing pods that has been inactive for too long although no pods are rejected."""
    shortages = [shortage for shortage in _shortages(observed) if shortage.age >= PATIENCE]
    if not shortages:
        return None
    first = shortages[0]
    name, group = meta.name(first.statefulset), first.group.name
    more = f" (and {format_count(len(shortages) - 1, 'more StatefulSet')})" if len(shortages) > 1 else ""
    annotate = f'annotate statefulset {name} --overwrite woken-at="$(date +%s)"'
    return Finding(
        subject=Subject(kind="StatefulSet", name=name, group=group),
        sentence=f"group {group}: its {first.state} for {duration(first.age)}{more}",
        evidence=tuple(
            f"group {shortage.group.name}: {shortage.state}; last change {duration(shortage.age)} ago"
            for shortage in shortages[:3]
        ),
        steps=(
            f"to trigger its controller: {observed.kubectl(annotate)}",
            "check that kube-controller-manager is running, and read its log",
        ),
    )


def _shortages(observed: Observed) -> Iterator[Shortage]:
    """Yield the StatefulSets with missing pods, first the leader StatefulSet and then the worker StatefulSets."""
    view, leaders = observed.view, observed.leader_statefulset
    if leaders is not None:
        replicas = int(meta.spec(leaders).get("replicas", 1))
        first = [rank for group in view.groups for rank in group.ranks[:1] if group.index < replicas]
        yield from _shortage(observed, leaders, first)
    for group in view.groups:
        members = [rank for rank in group.ranks if rank.index]
        if not any(map(_is_missing, members)):  # check this before searching all StatefulSets
            continue
        leader = group.leader.object if group.leader else None
        workers = groupname.find_workers(leader, observed.get(STATEFULSETS)) if leader else None
        if workers is not None:
            yield from _shortage(observed, workers, members)


def _is_missing(rank: Rank) -> bool:
    return rank.object is None and rank.why == NOT_CREATED


def _shortage(observed: Observed, statefulset: JSONObject, members: Sequence[Rank]) -> Iterator[Shortage]:
    missing = list(filter(_is_missing, members))
    selected = {rank.group for _, rank in observed.unready_ranks}
    group = next((each for each in observed.view.groups if missing and each.name == missing[0].group), None)
    if group is None or group.name not in selected or meta.is_deleting(statefulset):
        return
    entries = meta.metadata(statefulset).get("managedFields") or []
    times = [meta.creation_timestamp(statefulset), *(str(entry.get("time") or "") for entry in entries)]
    age = observed.time_since(max([*times, *(rank.created for rank in members)]))
    if age is not None:
        yield Shortage(statefulset, missing[0].pod, group, len(missing), age)


def first_overdue_pod(observed: Observed) -> str:
    """Return the first pod that is overdue and has no event, or an empty string if no pod is overdue."""
    for shortage in _shortages(observed):
        events = observed.warnings.about(observed.view.namespace, STATEFULSETS.kind, meta.name(shortage.statefulset))
        if shortage.age >= PROMPT and not list(events):
            return shortage.pod
    return ""


@cause(
    code="LWS-E107",
    title="workers wait until the previous workers have terminated",
    meaning="The new workers have the same names as the previous workers. Therefore, the manager creates the new workers after all previous workers have terminated.",
    remedy="Wait until the grace period of the pods expires. If your programs can exit faster, reduce terminationGracePeriodSeconds.",
    verdict=Verdict.PROGRESSING,
)
def find_terminating_workers(observed: Observed) -> Finding | None:
    """Find a group whose workers cannot be created because old workers are terminating (docs/adr/0045)."""
    if not observed.was_read(STATEFULSETS):
        return None
    for group in observed.view.groups:
        leader = group.leader.object if group.leader else None
        ending = [rank for rank in group.ranks if rank.index and ranks.is_terminating(rank)]
        if not ending or leader is None or meta.is_deleting(leader) or group.is_over:
            continue
        workers = groupname.find_workers(leader, observed.get(STATEFULSETS))
        if workers is None or meta.is_deleting(workers):
            return _waiting_finding(observed, group, ending)
    return None


def _waiting_finding(observed: Observed, group: Group, ending: Sequence[Rank]) -> Finding:
    rank = ending[0]
    more = f" (and {format_count(len(ending) - 1, 'more pod')})" if len(ending) > 1 else ""
    metadata = meta.metadata(rank.object or {})
    return Finding(
        subject=ranks.pod_subject(rank),
        sentence=f"group {group.name}: its new workers wait until previous pod {rank.pod} has terminated{more}",
        evidence=(
            f"{rank.pod}: terminating on node {rank.node or '(none)'}, until {metadata.get('deletionTimestamp')} at the latest",
        ),
        steps=(observed.lws(f"wait {observed.view.name}"),),
    )
