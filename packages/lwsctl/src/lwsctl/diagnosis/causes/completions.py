"""Finds containers that exit with code 0, which is an error in a serving rank and the goal of a batch workload.

Pure.
"""

from leaderworkerset.api import labels
from lwsctl.diagnosis import ranks
from lwsctl.diagnosis.causes.containers import RETRIED, group_and_rank, terminated_runs
from lwsctl.diagnosis.finding import Finding, cause
from lwsctl.diagnosis.observed import Observed
from lwsctl.diagnosis.ranks import is_placed
from lwsctl.model.groups import Group, Rank
from lwsctl.model.health import Verdict
from lwsctl.views import outcome, recreations
from lwsctl.views.wording import format_count


@cause(
    code="LWS-E075",
    title="a long-running container exited with code 0",
    meaning="A container exited with code 0. By default, ranks are expected to run until they are stopped.",
    remedy=f'Change the program to run until it is stopped. For batch workloads, set the annotation `{labels.RUN_TO_COMPLETION}: "true"`, or use a Job.',
    verdict=Verdict.CRASHING,
)
def find_unexpected_completion(observed: Observed) -> Finding | None:
    """Find a rank whose containers exited with code 0 but should continue to run."""
    if observed.runs_to_completion:
        return None
    done_ranks = [(group, rank) for group, rank in observed.unready_ranks if is_placed(rank) and _has_completed(rank)]
    ended = [
        (group, rank)
        for group, rank in done_ranks
        if not _waits_for_another(group, {member.pod for _, member in done_ranks})
    ]
    ended = ended or [
        group_and_rank(observed, death)
        for death in terminated_runs(observed)
        if death.is_recorded and not death.end["exitCode"]
    ]
    if not ended:
        return None
    group, rank = ended[0]
    evidence = [f"{rank.pod}: {rank.state}, {format_count(rank.restarts, 'restart')}"]
    if group.recreations is not None:
        evidence.append(f"group {group.name} {recreations.sentence(group.recreations, observed.now)}")
    return Finding(
        subject=ranks.pod_subject(rank),
        sentence=f"the container of pod {rank.pod} exited with code 0{ranks.others_suffix(len(ended))} and is restarted",
        evidence=tuple(evidence),
        steps=(
            observed.lws(f"logs {observed.view.name}/{rank.place}"),
            f"change the program to run until it is stopped; for batch workloads, set annotation {labels.RUN_TO_COMPLETION} or use a Job",
        ),
    )


def _waits_for_another(group: Group, done_pods: set[str]) -> bool:
    """Return whether a group waits to be recreated because of a pod that did not exit with code 0."""
    recreation = group.recreations
    return recreation is not None and recreation.is_waiting and recreation.failed_pod not in done_pods


def _has_completed(rank: Rank) -> bool:
    """Return whether a container exited with code 0 and has not been restarted."""
    for status in ranks.container_statuses(rank):
        state, last = status.get("state") or {}, (status.get("lastState") or {}).get("terminated") or {}
        end = state.get("terminated") or (last if (state.get("waiting") or {}).get("reason") == RETRIED else {})
        if end.get("exitCode") == 0 and rank.state in {"Completed", RETRIED, "NotReady"}:
            return True
    return False


@cause(
    code="LWS-E078",
    title="some ranks have exited, and others are running",
    meaning="The ranks are expected to run to completion. Some ranks exited with code 0, and the others are running.",
    remedy="Wait. If the remaining ranks take too long, read the log of a rank that is still running.",
    verdict=Verdict.PROGRESSING,
)
def find_remaining_ranks(observed: Observed) -> Finding | None:
    """Find ranks that are still running although other ranks have exited with code 0."""
    unfinished = observed.view.incomplete_ranks
    waiting = [rank for _, rank in unfinished if observed.rank in (None, rank.index)]
    is_begun = len(unfinished) < sum(len(group.ranks) for group in observed.view.groups)
    if not observed.runs_to_completion or not waiting or not is_begun:
        return None
    return Finding(
        subject=ranks.pod_subject(waiting[0]),
        sentence=outcome.count_of_ended(observed.view),
        evidence=tuple(f"{rank.pod}: {rank.state}, {format_count(rank.restarts, 'restart')}" for rank in waiting[:5]),
        steps=(observed.lws(f"logs {observed.view.name}/{waiting[0].place} --follow"),),
    )
