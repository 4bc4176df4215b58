"""Finds ranks that hang, restart in place, or do not exit in time. Pure."""

from kuberuntime.objects import meta, podstate, timestamps
from leaderworkerset.api import labels, restartannotation, runsettings
from leaderworkerset.api.groupname import GroupEnd
from leaderworkerset.api.progressannotations import SilentRank
from lwsctl.diagnosis import ranks
from lwsctl.diagnosis.finding import Finding, cause
from lwsctl.diagnosis.observed import Observed
from lwsctl.model.diagnosis import Subject
from lwsctl.model.groups import Group
from lwsctl.model.health import Verdict
from lwsctl.model.leaderworkerset import View
from lwsctl.views import devices, groupprogress, recreations
from lwsctl.views.wording import duration


@cause(
    code="LWS-E098",
    title="all containers of a pod are restarted in place",
    meaning="A container exited with a code for which a restart rule specifies RestartAllContainers. The kubelet restarts all containers without recreating the pod.",
    remedy=f"Wait. If the annotation `{labels.IN_PLACE_RESTARTS}` is set, the group is recreated only if the pod is not ready within the specified time. Otherwise, the group is recreated immediately.",
    verdict=Verdict.PROGRESSING,
)
def find_in_place_restart(observed: Observed) -> Finding | None:
    """Find a pod that is not ready after an in-place restart, or a group that is recreated because of this."""
    for group, rank in observed.unready_ranks:
        note = restartannotation.read(rank.object or {})
        if note.started_at is not None:
            return Finding(
                subject=ranks.pod_subject(rank),
                sentence=f"group {group.name} is not recreated: {recreations.in_place(group, observed.now)}",
                evidence=(f"{rank.pod}: {rank.state}, annotation {labels.RESTARTED_IN_PLACE}: {note}",),
                steps=(observed.lws(f"logs {observed.view.name}/{rank.place} --previous"),),
            )
    for group in observed.view.groups:
        recreation = group.recreations
        if recreation is not None and not group.is_ready and podstate.ALL_RESTARTED in recreation.failure:
            return Finding(
                subject=Subject(kind="Pod", name=recreation.failed_pod, group=group.name),
                sentence=f"pod {recreation.failed_pod} restarted all its containers in place, so group {group.name} is recreated",
                evidence=(f"group {group.name} {recreations.sentence(recreation, observed.now)}",),
                steps=(
                    f"to allow in-place restarts, set annotation {labels.IN_PLACE_RESTARTS} of {observed.view.name}",
                ),
                verdict=Verdict.STUCK,
            )
    return None


def hung_groups(view: View) -> list[Group]:
    """Return the stalled groups, if the LeaderWorkerSet enables progress tracking."""
    is_watched = runsettings.read(meta.annotations(view.object)).timeout is not None
    return [group for group in view.groups if is_watched and group.hang is not None]


@cause(
    code="LWS-E076",
    title="a group makes no progress",
    meaning=f"The leader has not reported a step within the duration in the annotation `{labels.PROGRESS_TIMEOUT}`. The message shows the rank with the oldest output.",
    remedy=f"Check the log and the stack (`py-spy dump`, `gdb`) of the rank in the message. To recreate groups without progress automatically, set the annotation `{labels.ON_HANG}: recreate`.",
)
def find_hang(observed: Observed) -> Finding | None:
    """Find a group whose ranks run without progress, and the rank whose progress report is the oldest."""
    for group in hung_groups(observed.view):
        hang, progress = group.hang, group.progress
        if hang is None:
            continue
        blamed = hang.longest_silent_rank
        place = f"{observed.view.name}/{group.name}/{blamed.rank}"
        last = (
            f"its last step was {progress.step}" + (f" of {progress.total}" if progress.total else "")
            if progress
            else "it has not reported a step yet"
        )
        return Finding(
            subject=Subject(kind="Pod", name=blamed.pod, group=group.name, rank=blamed.rank),
            sentence=f"group {group.name} has made {groupprogress.silence_text(hang, observed.now)}",
            evidence=(
                f"{last}, at {timestamps.render(hang.since)}",
                *(_silence_evidence(observed, rank) for rank in hang.ranks),
            ),
            steps=(
                observed.lws(f"logs {place}"),
                observed.lws(f"exec {place} -- sh"),
                f"or recreate the group: {observed.lws(f'restart {observed.view.name}/{group.name}')}",
            ),
        )
    return None


def _silence_evidence(observed: Observed, rank: SilentRank) -> str:
    waits = f", waits for {rank.waits}" if rank.waits else ""
    idle = devices.idle_text(ranks.find_pod(observed.view, rank.pod), observed.now)
    silence = f"rank {rank.rank} ({rank.pod}): no output for {duration(observed.now - rank.since)}{waits}"
    return f"{silence}, {idle}" if idle else silence


@cause(
    code="LWS-E077",
    title="a group has reached its deadline",
    meaning=(
        f"The deadline in the annotation `{labels.COMPLETION_DEADLINE}` passed before the leader exited with code 0."
    ),
    remedy="Read the log of the leader, if it still exists. To start a new run with a new deadline, change the template.",
)
def find_missed_deadline(observed: Observed) -> Finding | None:
    """Find a group that was terminated at the deadline of its LeaderWorkerSet."""
    for group in observed.view.groups:
        if group.end is not GroupEnd.LATE:
            continue
        pod = group.ranks[0].pod
        deadline = meta.annotations(observed.view.object).get(labels.COMPLETION_DEADLINE, "")
        return Finding(
            subject=Subject(kind="Pod", name=pod, group=group.name),
            sentence=f"group {group.name} reached its deadline before its leader exited with code 0, and was terminated",
            evidence=(f"{pod}: annotation {labels.GROUP_ENDED}: {GroupEnd.LATE}", f"deadline: {deadline or 'removed'}"),
            steps=(
                # Kubernetes nodes delete the log with the containers
                *(() if observed.commands.kubectl else (observed.lws(f"logs {observed.view.name}/{group.name}/0"),)),
                f"to extend the deadline, set annotation {labels.COMPLETION_DEADLINE} and apply a new template: "
                + observed.lws(f"restart {observed.view.name}"),
            ),
        )
    return None
