"""Restarts of all containers of a pod in place: in progress, or the reason why groups are recreated. Pure."""

from typing import Final

from kuberuntime.objects import podstate
from leaderworkerset.api import labels, restartnotes
from leaderworkerset.diagnosis import ranks
from leaderworkerset.diagnosis.finding import Cause, Finding, Subject, Verdict
from leaderworkerset.diagnosis.observed import Observed
from leaderworkerset.views import recreations


def restarts_in_place(observed: Observed) -> Finding | None:
    """Find a pod that restarts all its containers and is not ready again yet, or a group that is recreated for that."""
    for group, rank in observed.unready:
        note = restartnotes.read(rank.object or {})
        if note.since is not None:
            return Finding(
                subject=ranks.subject(rank),
                sentence=f"group {group.name} is kept: {recreations.in_place(group, observed.now)}",
                evidence=(f"{rank.pod}: {rank.state}, annotation {labels.RESTARTED_IN_PLACE}: {note}",),
                steps=(observed.lws(f"logs {observed.view.name}/{rank.place} --previous"),),
            )
    for group in observed.view.groups:
        told = group.recreations
        if told is not None and not group.is_ready and podstate.ALL_RESTARTED in told.failure:
            return Finding(
                subject=Subject(kind="Pod", name=told.failed_pod, group=group.name),
                sentence=f"pod {told.failed_pod} restarted all its containers in place, for which group {group.name} is recreated",
                evidence=(f"group {group.name} {recreations.sentence(told, observed.now)}",),
                steps=(f"to let pods restart in place: annotation {labels.IN_PLACE_RESTARTS} of {observed.view.name}",),
                verdict=Verdict.STUCK,
            )
    return None


IN_PLACE: Final = Cause(
    code="LWS-E098",
    title="all containers of a pod restart in place",
    meaning="A container ended with an exit code for which its rules say RestartAllContainers: its pod starts anew, and stays.",
    remedy=(
        f"Wait: the group is recreated if the pod takes longer than the annotation `{labels.IN_PLACE_RESTARTS}` says. "
        "Without that annotation each such restart recreates the group."
    ),
    find=restarts_in_place,
    verdict=Verdict.PROGRESSING,
)
