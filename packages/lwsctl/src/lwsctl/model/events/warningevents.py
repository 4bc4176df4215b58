"""Finds the latest event that explains why a rank is not ready if the pod does not explain it. Pure.

The input is the events (v1) of a namespace. Warning events of the StatefulSet or LeaderWorkerSet explain a missing
pod. Events of a pod explain why it does not start. Outdated events are ignored: events of a different pod with the
same name, events that are older than the leader, and events of a stage that the pod has passed. Normal events show
that an autoscaler adds a node, or that an image is being pulled.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.objects import meta, podstate, terminations, timestamps, untrustedtext
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.terminations import REMEMBERED
from kuberuntime.texts import errorboundary
from kuberuntime.texts.masking import mask_message
from leaderworkerset.api import kubeletkills
from leaderworkerset.api.eventvalue import last_occurrence
from leaderworkerset.api.kubeletkills import Kill
from lwsctl.model import crashes, rankstarts, recreationrecords
from lwsctl.model.events import pulls, scaleups
from lwsctl.model.events.eventrecord import WarningEvent
from lwsctl.model.groups import NOT_CREATED, Group, Rank
from lwsctl.model.leaderworkerset import View

LONGEST_SILENCE: Final = timedelta(minutes=20)
"""The time after which a failure is considered resolved. The StatefulSet controller retries within 1000 seconds."""

STARTING: Final = frozenset({"Pending", "ContainerCreating", "PodInitializing"})
OF_SCHEDULING: Final = frozenset({"FailedScheduling", "FailedBinding"})
OF_PROBES: Final = frozenset({"Unhealthy", "ProbeWarning"})
EVICTED: Final = "Evicted"
NODE_NOT_READY: Final = "NodeNotReady"
OF_RUNS: Final = frozenset({"BackOff", "RecreateGroup"})
"""Event reasons that container states or the recreation record explain better."""


class Warnings:
    """The events of one or all namespaces by involved object. Most causes use only Warning events."""

    def __init__(self, events: Iterable[JSONObject]) -> None:
        self._by_object: dict[tuple[str, str, str], list[WarningEvent]] = {}
        self._all: dict[tuple[str, str, str], list[WarningEvent]] = {}
        for event in events:
            errorboundary.attempt(partial(self._add, event), str)  # the other warnings remain evidence

    def _add(self, event: JSONObject) -> None:
        about, record = event.get("involvedObject") or {}, _parse_event(event)
        key = (about.get("namespace") or meta.namespace(event), record.kind, record.name)
        self._all.setdefault(key, []).append(record)
        if record.is_warning:
            self._by_object.setdefault(key, []).append(record)

    def about(self, namespace: str, kind: str, name: str) -> Sequence[WarningEvent]:
        """Return the warnings about objects with this name, regardless of their UID."""
        return self._by_object.get((namespace, kind, name), ())

    def of_any_type(self, namespace: str, kind: str, name: str) -> Sequence[WarningEvent]:
        """Return all events about objects with this name, regardless of their UID."""
        return self._all.get((namespace, kind, name), ())

    def kills(self, namespace: str, pod: str) -> list[Kill]:
        """Return the containers that a kubelet killed in pods with this name, with the latest first."""
        events = self.of_any_type(namespace, "Pod", pod)
        candidates = (
            kubeletkills.kill_from_event(event.uid, event.reason, event.message, event.last) for event in events
        )
        return sorted(filter(None, candidates), key=lambda kill: kill.last, reverse=True)

    def of_pod(self, namespace: str, rank: Rank) -> list[WarningEvent]:
        """Return all events about the current pod of the rank."""
        return [event for event in self.of_any_type(namespace, "Pod", rank.pod) if event.uid == rank.uid]

    def pull_of(self, namespace: str, rank: Rank) -> pulls.Pull | None:
        """Return the image pull that a rank waits for, or None if no image is being pulled."""
        if rank.is_ready or not rank.node or not _is_starting(rank):
            return None
        pull = pulls.current_pull(self.of_pod(namespace, rank))
        if pull is None:
            return None
        others = (event for events in self._all.values() for event in events)
        return replace(pull, last_took=pulls.last_duration(pull.image, others))


def is_waiting_for_node(rank: Rank) -> bool:
    """Return whether a pod waits for a node. An autoscaler may then be adding a node."""
    return rank.object is not None and not rank.node and not meta.is_deleting(rank.object)


def _is_starting(rank: Rank) -> bool:
    return rank.state in STARTING or rank.state.startswith("Init:")


def is_unexplained(rank: Rank) -> bool:
    """Return whether events may explain the state of a rank better than the pod."""
    if rank.is_ready or rank.state in {"Completed", "Terminating"}:
        return False
    if rank.object is None:
        return rank.why == NOT_CREATED
    unready = meta.find_condition(rank.object, "Ready") or {}
    return rank.why in {"", mask_message(str(unready.get("message") or ""))}


def explanation(view: View, group: Group, rank: Rank, warnings: Warnings, now: datetime) -> str:
    """Return the message of the latest warning that explains an unready rank, or an empty string."""
    if not is_unexplained(rank):
        return ""
    candidates = (
        _missing_pod_warnings(view, group, rank, warnings) if rank.object is None else _pod_events(view, rank, warnings)
    )
    current = [event for event in candidates if rank.object is not None or now - event.last < LONGEST_SILENCE]
    newest = max(current, key=lambda event: event.last, default=None)
    pull = warnings.pull_of(view.namespace, rank)
    if pull is not None and (newest is None or newest.last <= pull.since):
        return pulls.describe_pull(pull, rank.node, now)
    return mask_message(newest.message) if newest else ""


def _with_scale_up(view: View, rank: Rank, why: str, warnings: Warnings, now: datetime) -> str:
    """Return the reason of a rank. If an autoscaler adds nodes in time, the progress of the autoscaler is first."""
    request = scaleups.node_request(warnings.of_pod(view.namespace, rank)) if is_waiting_for_node(rank) else None
    if request is None or request.is_refused or now - request.last >= scaleups.NODE_PATIENCE:
        return why
    return ": ".join(filter(None, [mask_message(scaleups.added_text(request, now)), why]))


def _pod_events(view: View, rank: Rank, warnings: Warnings) -> list[WarningEvent]:
    own = [
        _with_node(event, rank) for event in warnings.about(view.namespace, "Pod", rank.pod) if event.uid == rank.uid
    ]
    if _is_starting(rank):
        passed = OF_PROBES | OF_RUNS | (OF_SCHEDULING if rank.node else frozenset())
        return [event for event in own if event.reason not in passed]
    started = _start_time(rank)
    return [event for event in own if event.reason in {*OF_PROBES, NODE_NOT_READY} and event.last >= started]


def _with_node(event: WarningEvent, rank: Rank) -> WarningEvent:
    """Return the event. If the node controller marked the pod as not ready, the event includes the node name."""
    return replace(event, message=f"node {rank.node} is not ready") if event.reason == NODE_NOT_READY else event


def _start_time(rank: Rank) -> datetime:
    statuses = meta.status(rank.object or {}).get("containerStatuses") or []
    running = [(status.get("state") or {}).get("running") or {} for status in statuses]
    return max((timestamps.moment(state.get("startedAt")) for state in running), default=timestamps.BEGINNING)


def _missing_pod_warnings(view: View, group: Group, rank: Rank, warnings: Warnings) -> list[WarningEvent]:
    """Return the warnings about the StatefulSet that creates the pod. Warnings about this pod are first.

    If there are none, return the warnings of the LeaderWorkerSet.
    """
    leader = group.leader
    if rank.index and (leader is None or leader.object is None):
        return []  # its StatefulSet is created after the leader
    owner = leader.pod if rank.index and leader else view.name
    since = timestamps.moment(leader.created if rank.index and leader else view.created)
    siblings = group.ranks if rank.index else [other.leader for other in view.groups if other.leader]
    newest = max((timestamps.moment(sibling.created) for sibling in siblings), default=timestamps.BEGINNING)
    events = [event for event in warnings.about(view.namespace, "StatefulSet", owner) if event.last >= since]
    own = [event for event in events if f"Pod {rank.pod} " in event.message]
    if own:
        return own
    others = [event for event in events if event.last >= newest]
    return others or [event for event in _set_warnings(view, rank, owner, warnings) if event.last >= max(since, newest)]


def _set_warnings(view: View, rank: Rank, owner: str, warnings: Warnings) -> list[WarningEvent]:
    """Return the LeaderWorkerSet's warnings about the leader, for a worker, or about no group, for a leader."""
    events = warnings.about(view.namespace, "LeaderWorkerSet", view.name)
    related_pod = owner if rank.index else ""
    uid = meta.metadata(view.object).get("uid", "")
    return [
        event for event in events if event.uid == uid and event.related == related_pod and event.reason not in OF_RUNS
    ]


def _parse_event(event: JSONObject) -> WarningEvent:
    about = event.get("involvedObject") or {}
    related = event.get("related") or {}
    return WarningEvent(
        kind=about.get("kind", ""),
        name=about.get("name", ""),
        uid=about.get("uid", ""),
        reason=event.get("reason", ""),
        message=" ".join(untrustedtext.clean(untrustedtext.shorten(str(event.get("message") or ""))).split()),
        last=last_occurrence(event),
        related=related.get("name", "") if related.get("kind") == "Pod" else "",
        component=event.get("reportingComponent") or (event.get("source") or {}).get("component") or "",
        host=(event.get("source") or {}).get("host") or "",
        is_warning=event.get("type") == "Warning",
    )


class Evidence(Struct, frozen=True, kw_only=True):
    """Events (v1) and recreation records of one or all namespaces."""

    events: Sequence[JSONObject] = ()
    records: Sequence[JSONObject] = ()


def wants_events(views: Iterable[View]) -> bool:
    """Return whether events are required because the pod of an unready rank does not contain the whole reason."""
    ranks = (rank for view in views for rank in view.ranks)
    return any(is_unexplained(rank) or is_waiting_for_node(rank) for rank in ranks)


def explain_views(views: Iterable[View], evidence: Evidence, now: datetime) -> list[View]:
    """Return the views, with reasons and recreations from the evidence."""
    warnings, records = Warnings(evidence.events), recreationrecords.by_leader(evidence.records)
    return [_add_evidence(view, warnings, records, now) for view in views]


def _with_evidence_error(group: Group, error: str) -> Group:
    """Return a group whose evidence cannot be shown. For unready ranks without a reason, the error is the reason."""
    ranks = (rank if rank.is_ready or rank.why else replace(rank, why=error) for rank in group.ranks)
    return replace(group, ranks=tuple(ranks))


Records: TypeAlias = Mapping[tuple[str, str], JSONObject]


def _add_evidence(view: View, warnings: Warnings, records: Records, now: datetime) -> View:
    """Return a view with reasons and with the recreations of its groups."""
    last = errorboundary.attempt(partial(_longest_starts, view), lambda _: {})

    def explain(group: Group) -> Group:
        evictions = _evictions(view, group, warnings, now)
        record = recreationrecords.of_leader(records, view, group)
        known = _with_kill(view, _with_recreations(group, record, evictions, ends=view.runs_to_completion), warnings)
        return _group(view, known, warnings, last, now)

    groups = (
        errorboundary.attempt(partial(explain, group), partial(_with_evidence_error, group)) for group in view.groups
    )
    return replace(view, groups=tuple(groups))


def _longest_starts(view: View) -> Mapping[bool, timedelta]:
    """Return the longest starts of ready ranks if any rank is not ready."""
    ranks = view.ranks
    return {} if all(rank.is_ready for rank in ranks) else rankstarts.longest_starts(ranks)


def _with_recreations(group: Group, record: JSONObject | None, evictions: Sequence[datetime], *, ends: bool) -> Group:
    leader = group.leader.object if group.leader else None
    known = replace(group, recreations=recreationrecords.read(record, leader) if record is not None else None)
    return replace(known, crashes=crashes.of_group(known, ends=ends, evictions=evictions))


def _with_kill(view: View, group: Group, warnings: Warnings) -> Group:
    """Return the group. If a kubelet killed a container in the failed pod, the recreation explains why."""
    recreation = group.recreations
    if recreation is None:
        return group
    kills = warnings.kills(view.namespace, recreation.failed_pod)
    kill = kubeletkills.kill_of_failure(kills, recreation.failed_uid, recreation.failure)
    return replace(group, recreations=replace(recreation, killed=str(kill))) if kill else group


def _evictions(view: View, group: Group, warnings: Warnings, now: datetime) -> list[datetime]:
    """Return the times at which kubelets evicted previous pods of the group.

    Evicted leaders are only recorded in events.
    """
    events = (
        (event, rank)
        for rank in group.ranks
        for event in warnings.about(view.namespace, "Pod", rank.pod)
        if event.reason == EVICTED and event.uid != rank.uid and now - event.last < REMEMBERED
    )
    return sorted({event.uid: event.last for event, _ in events}.values())


def _group(view: View, group: Group, warnings: Warnings, last: Mapping[bool, timedelta], now: datetime) -> Group:
    """Return a group with failed runs and reasons of its ranks, even while it is ready between two failures."""
    if group.is_ready and (group.crashes is None or group.crashes.are_over(now)):
        return group
    are_ready = all(rank.is_ready for rank in group.ranks)
    suspects = [rank for rank in group.ranks if rank.object and (are_ready or not rank.is_ready)]
    runs = {rank.pod: tuple(terminations.of_pod(rank.object or {}, now)) for rank in suspects}
    if (
        group.recreations
        and not any(runs.values())
        and (run := recreationrecords.failed_run(view, group.recreations, now))
    ):
        runs |= {rank.pod: (run,) for rank in group.ranks if rank.index == group.recreations.failed_rank}
    members = [
        replace(rank, deaths=runs.get(rank.pod, ()), startup=rankstarts.current_start(rank, last, now))
        for rank in group.ranks
    ]
    ranks = (replace(rank, why=_waiting_reason(view, group, rank, warnings, now)) for rank in members)
    return replace(group, ranks=tuple(ranks))


def _waiting_reason(view: View, group: Group, rank: Rank, warnings: Warnings, now: datetime) -> str:
    if rank.deaths and rank.node and is_unexplained(rank):
        return mask_message(
            f"{rank.deaths[0].container}: {podstate.describe_termination(rank.deaths[0].end)}; restarted"
        )
    return _with_scale_up(view, rank, explanation(view, group, rank, warnings, now) or rank.why, warnings, now)
