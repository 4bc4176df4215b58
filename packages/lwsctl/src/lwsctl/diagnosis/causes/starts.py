"""Finds causes that affect whole groups, such as names, rendezvous, start order, and recreations. Pure."""

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from msgspec.structs import replace

from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.resources import SERVICES
from leaderworkerset.api import labels
from leaderworkerset.api.policytypes import AWAITS_LEADER
from leaderworkerset.decisions.serviceselection import HEADLESS, service_selects
from lwsctl.diagnosis import exits, logerrors, ranks
from lwsctl.diagnosis.causes.components import autoscalers
from lwsctl.diagnosis.causes.unreconciled import last_change_time
from lwsctl.diagnosis.finding import Finding, cause
from lwsctl.diagnosis.observed import Observed
from lwsctl.model import recreationrecords
from lwsctl.model.diagnosis import RecordedRun, Subject
from lwsctl.model.failurehistory import Recreations
from lwsctl.model.groups import MISSING, Group, Rank
from lwsctl.model.health import Verdict
from lwsctl.views import recreations, wording
from lwsctl.views.wording import duration, format_count

PATIENCE: Final = timedelta(minutes=2)
"""The time after which the start of a rank is considered slow. The limit for image pulls is different."""

EVICTED: Final = "EvictionByEvictionAPI"
"""The reason in the status of a pod that was deleted through the Eviction API."""

STARTING: Final = frozenset({"Pending", "ContainerCreating", "PodInitializing", "Running", MISSING, "Terminating"})
SETTLING: Final = timedelta(seconds=10)
INITIALIZING: Final = re.compile(r"Init:\d+/\d+")


def startup_verdict(observed: Observed, rank: Rank) -> Verdict:
    """Return the verdict for a rank that is running but not ready, because it may be loading or stuck.

    A rank that runs to completion does not have to become ready.
    """
    if observed.startup(rank) is not None:
        return Verdict.STARTING
    return Verdict.PROGRESSING if observed.runs_to_completion else Verdict.STUCK


@cause(
    code="LWS-E083",
    title="ranks cannot find each other by name",
    meaning="The headless Service is missing, or does not publish the addresses of ranks that are not ready.",
    remedy="If the Service exists, delete it. The manager then recreates the Service. Make sure that no other component creates a Service with the same name.",
)
def find_unresolvable_names(observed: Observed) -> Finding | None:
    """Find a headless Service that does not exist or does not publish ranks before they are ready."""
    if not observed.was_read(SERVICES):
        return None
    for _, rank in observed.unready_ranks:
        name = str(meta.spec(rank.object or {}).get("subdomain") or "")
        if not name:
            continue
        service = observed.by_name(SERVICES, name)
        spec = meta.spec(service or {})
        is_used = bool(spec.get("selector")) and service_selects(spec["selector"], observed.view.object)
        verdict = None
        if service is None and _was_just_created(observed, rank):
            continue  # the Service of a group is created after its leader
        if service is None:
            why = "does not exist"
        elif spec.get("clusterIP") != HEADLESS:
            why, verdict = "is not headless", startup_verdict(observed, rank) if is_used else None
        elif not spec.get("publishNotReadyAddresses"):
            why = "publishes only ready ranks"
        else:
            continue
        return Finding(
            subject=Subject(kind="Service", name=name, group=rank.group),
            sentence=f"Service {name} {why}, so the name of pod {rank.pod} does not resolve",
            evidence=(f"{rank.pod}: spec.subdomain {name}; Service {name} {why}",),
            verdict=verdict,
            steps=(
                f"delete Service {name}, or rename it, so that the manager creates the correct Service"
                if service
                else observed.lws(f"events {observed.view.name} --warnings"),
            ),
        )
    return None


def _was_just_created(observed: Observed, rank: Rank) -> bool:
    age = observed.time_since(rank.created)
    return age is not None and age < SETTLING


@cause(
    code="LWS-E082",
    title="the leader is not ready, although its workers are",
    meaning="All workers are ready, but the leader is not ready. Often, the leader waits for ranks that never connect.",
    remedy="Read the log of the leader. Check the group size, the leader address, the ports and the network policies.",
)
def find_unready_leader(observed: Observed) -> Finding | None:
    """Find a leader that is running but not ready, although all of its workers are ready."""
    for group in observed.view.groups:
        leader, workers = group.leader, [rank for rank in group.ranks if rank.index]
        runs = leader is not None and leader.state == "Running" and not leader.is_ready
        if leader is None or not runs or not workers or not all(rank.is_ready for rank in workers):
            continue
        up = format_count(len(workers), "worker")
        return Finding(
            subject=ranks.pod_subject(leader),
            sentence=f"leader {leader.pod} is running but not ready, although its {up} {'is' if len(workers) == 1 else 'are'}",
            evidence=(f"{leader.pod}: {ranks.quote_message(leader.why) or leader.state}",),
            verdict=startup_verdict(observed, leader),
            steps=(
                observed.lws(f"logs {observed.view.name}/{leader.place}"),
                "check that the leader waits for LWS_GROUP_SIZE ranks at LWS_LEADER_ADDRESS",
            ),
        )
    return None


@cause(
    code="LWS-E084",
    title="workers wait for their leader to be ready",
    meaning="If startupPolicy is LeaderReady, the manager creates the workers of a group only after the leader is ready.",
    remedy="Find out why the leader is not ready. If the leader requires its workers before it can become ready, use LeaderCreated.",
)
def find_waiting_workers(observed: Observed) -> Finding | None:
    """Find workers that are not created until their leader is ready."""
    for group in observed.view.groups:
        workers = [rank for rank in group.ranks if rank.why == AWAITS_LEADER]
        leader = group.leader
        wait = (
            f"{format_count(len(workers), 'worker')} of group {group.name} {'waits' if len(workers) == 1 else 'wait'}"
        )
        if workers and leader is not None and leader.state == "Running" and not leader.is_ready:
            return Finding(
                subject=ranks.pod_subject(leader),
                sentence=f"{wait} until leader {leader.pod} is ready (startupPolicy LeaderReady)",
                verdict=startup_verdict(observed, leader),
                evidence=(f"{leader.pod}: {leader.state}, not ready{f': {leader.why}' if leader.why else ''}",),
                steps=(
                    observed.lws(f"logs {observed.view.name}/{leader.place}"),
                    "if the leader becomes ready only after its workers, use startupPolicy LeaderCreated",
                ),
            )
    return None


def _recreated_groups(observed: Observed) -> Iterator[tuple[Group, Recreations, Subject]]:
    """Yield groups that were or will be recreated, with their record and the failed pod."""
    for group in observed.view.groups:
        recreation = group.recreations
        if recreation is not None:
            yield group, recreation, Subject(kind="Pod", name=recreation.failed_pod, group=group.name)


def _advice(observed: Observed, group: Group, recreation: Recreations) -> tuple[str, ...]:
    """Return the meaning of the recorded exit code, and the command that shows the log.

    If no run is recorded, return the command that shows events.
    """
    run = recreationrecords.recorded_run(observed.view, recreation)
    rank = next((rank for rank in group.ranks if rank.index == recreation.failed_rank), None)
    if run is None or rank is None:
        return (observed.lws(f"events {observed.view.name}/{group.name}"),)
    meaning = () if recreation.killed else exits.exit_advice(observed, rank, run)  # it exited because of a signal
    return (*meaning, *exits.log_steps(observed, rank, run))


def _recorded_run(observed: Observed, recreation: Recreations) -> tuple[RecordedRun | None, Recreations]:
    """Return a recorded run whose log may contain the error, and the recreation without its less precise error."""
    run = recreationrecords.recorded_run(observed.view, recreation)
    known = None if run is None else logerrors.recorded_run(run)
    if run is None or known is None:
        return None, recreation
    return known, replace(recreation, failure=f"{run.container}: {exits.describe_exit(run.end)}")


def _eviction_note(observed: Observed, recreation: Recreations) -> tuple[str, ...]:
    """Return a note if an autoscaler or the Eviction API terminated the failed pod because of a node drain."""
    if removal := autoscalers.removing_autoscaler(observed, recreation.failed_pod):
        return (removal,)
    if EVICTED not in recreation.failure:
        return ()
    return (f"{recreation.failed_pod} was evicted, for example by a node drain; the group starts on other nodes",)


@cause(
    code="LWS-E080",
    title="the recreation of a group is delayed",
    meaning="A group failed again soon after it was recreated. The manager delays the next recreation. The delay increases to a maximum of five minutes.",
    remedy="Read the log of the failed pod, and correct the template. A corrected template is rolled out immediately.",
    verdict=Verdict.PROGRESSING,
)
def find_backoff(observed: Observed) -> Finding | None:
    """Find a group that failed again and waits for its recreation."""
    for group, recreation, subject in _recreated_groups(observed):
        if not recreation.is_waiting:
            continue
        left = recreation.due - observed.now
        run, plain = _recorded_run(observed, recreation)
        return Finding(
            subject=subject,
            recorded_run=run,
            statement=f"group {group.name} {recreations.sentence(plain, observed.now)}",
            sentence=f"group {group.name} {recreations.sentence(recreation, observed.now)}",
            evidence=(
                f"consecutive recreation {recreation.count}, due {timestamps.render(recreation.due)}",
                *_eviction_note(observed, recreation),
            ),
            steps=(
                *_advice(observed, group, recreation),
                f"wait {duration(left)}, or fix the problem and apply a new template",
            ),
        )
    return None


@cause(
    code="LWS-E079",
    title="a group has reached its restart limit",
    meaning="A group failed more often than maxGroupRestarts allows. The group was terminated, and its pods are kept for diagnosis.",
    remedy="Read the log of the failed pod, and fix the error. To restart the group, run `lws recover`. If failure recording is enabled, `lws history` shows the logs of deleted pods.",
)
def find_exhausted_group(observed: Observed) -> Finding | None:
    """Find a group that has no remaining restarts and whose pods are kept for diagnosis."""
    for group in observed.view.groups:
        if not group.is_exhausted:
            continue
        recreation, leader = group.recreations, group.ranks[0]
        why = (
            recreations.sentence(recreation, observed.now)
            if recreation
            else "has no remaining restarts, and its pods are kept for diagnosis"
        )
        return Finding(
            subject=Subject(kind="Pod", name=recreation.failed_pod if recreation else leader.pod, group=group.name),
            sentence=f"group {group.name} {why}",
            evidence=(f"{leader.pod}: annotation {labels.GROUP_RESTART_BUDGET_EXHAUSTED}",),
            steps=(
                observed.kept_log_step(str(group.name)),
                "fix the problem and apply a new template",
                f"or recover the group: {observed.lws(f'recover {observed.view.name}/{group.name}')}",
            ),
        )
    return None


@cause(
    code="LWS-E081",
    title="a group was recreated after a failure",
    meaning="A pod failed, and its group was recreated. The group is starting, or has been ready for less than a minute.",
    remedy="Wait. If the group fails again, the diagnosis shows the cause until the failed pod is deleted.",
    verdict=Verdict.PROGRESSING,
)
def find_recent_recreation(observed: Observed) -> Finding | None:
    """Find a group that was recreated after a failure and has not been ready for long enough."""
    for group, recreation, subject in _recreated_groups(observed):
        is_over = group.is_ready and (group.crashes is None or group.crashes.are_over(observed.now))
        if recreation.done and not (group.is_condemned or is_over):
            state = "is ready again, but not for long enough" if group.is_ready else "starts again"
            run, plain = _recorded_run(observed, recreation)
            return Finding(
                subject=subject,
                recorded_run=run,
                statement=f"group {group.name} {state}: {recreations.sentence(plain, observed.now)}",
                sentence=f"group {group.name} {state}: {recreations.sentence(recreation, observed.now)}",
                evidence=(f"consecutive recreation {recreation.count}", *_eviction_note(observed, recreation)),
                steps=_advice(observed, group, recreation),
            )
    return None


@cause(
    code="LWS-E091",
    title="ranks are starting",
    meaning="Pods are being created and started, and no error was found.",
    remedy="Wait.",
    verdict=Verdict.STARTING,
)
def find_starting_ranks(observed: Observed) -> Finding | None:
    """Find ranks that have been starting for no longer than usual."""
    waiting = [rank for _, rank in observed.unready_ranks]
    usual = all(rank.state in STARTING or INITIALIZING.fullmatch(rank.state) for rank in waiting)
    awaited = _last_creation_time(observed)
    if not waiting or not usual or not all(_is_new(observed, rank, awaited) for rank in waiting):
        return None
    return _starting_finding(observed, waiting)


def find_loading_ranks(observed: Observed) -> Finding | None:
    """Find running ranks that were never ready and are within their time limit, if there is no other cause."""
    waiting = [rank for _, rank in observed.unready_ranks]
    are_starting = all(rank.state == "Running" and observed.startup(rank) is not None for rank in waiting)
    return _starting_finding(observed, waiting) if waiting and are_starting else None


def _starting_finding(observed: Observed, waiting: Sequence[Rank]) -> Finding:
    starting = [rank for rank in waiting if not ranks.is_terminating(rank)]
    texts = [_describe_phase(starting, f"starting: {', '.join(sorted({wording.state(rank) for rank in starting}))}")]
    texts.append(
        _describe_phase([rank for rank in waiting if ranks.is_terminating(rank)], "terminating, and will be replaced")
    )
    return Finding(
        subject=ranks.pod_subject(waiting[0]),
        sentence="; ".join(filter(None, texts)),
        evidence=ranks.rank_states(waiting),
        steps=(observed.lws(f"wait {observed.view.name}"),),
    )


def _describe_phase(members: Sequence[Rank], what: str) -> str:
    """Return a sentence about the state of some ranks, or an empty string if there are none."""
    return f"{format_count(len(members), 'rank')} {'is' if len(members) == 1 else 'are'} {what}" if members else ""


def _is_new(observed: Observed, rank: Rank, awaited: str) -> bool:
    """Return whether a rank is new. If the rank has no pod, its age is the age of its group or of `awaited`."""
    group = next(candidate for candidate in observed.view.groups if candidate.name == rank.group)
    stamp = rank.created or max(member.created for member in group.ranks)
    age = observed.time_since(stamp or awaited)
    return age is not None and age < PATIENCE


def _last_creation_time(observed: Observed) -> str:
    """Return the time of the last pod creation or scaling. It can take minutes to create hundreds of pods."""
    changes = [last_change_time(obj) for obj in (observed.view.object, observed.leader_statefulset) if obj is not None]
    return max([*changes, *(rank.created for rank in observed.view.ranks)])
