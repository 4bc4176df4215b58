"""Finds failed postStart hooks. If a hook fails, the kubelet kills the container. Pure."""

from typing import Final

from leaderworkerset.api.kubeletkills import HOOK_FAILED, Kill
from lwsctl.diagnosis import ranks
from lwsctl.diagnosis.causes.kubelets.lateevents import likely_kills
from lwsctl.diagnosis.finding import Finding, cause
from lwsctl.diagnosis.observed import Observed
from lwsctl.diagnosis.ranks import is_scheduled_or_recorded
from lwsctl.model.groups import Group, Rank
from lwsctl.model.health import Verdict

HOOK_ERROR: Final = "PostStartHookError"
"""The state of a waiting container whose hook failed."""


@cause(
    code="LWS-E115",
    title="a postStart hook fails",
    meaning="The kubelet kills a container if its postStart hook fails. The exit code of the container does not indicate the cause.",
    remedy="Correct the hook in the pod template, or use an init container instead.",
)
def find_failed_start_hook(observed: Observed) -> Finding | None:
    """Find a container that was killed because its postStart hook failed."""
    for group, rank in ranks.unready_ranks(observed):
        reported = _find_kill(observed, group, rank) if is_scheduled_or_recorded(rank) else None
        kill = reported or _waiting_kill(observed, rank)
        if kill is None:
            continue
        hooked = [
            str(container.get("name"))
            for container in ((rank.object or {}).get("spec") or {}).get("containers") or []
            if (container.get("lifecycle") or {}).get("postStart")
        ]
        container = kill.container or next(iter(hooked), "")
        what = f"container {container} of pod {rank.pod}" if container else f"pod {rank.pod}"
        place = f"{observed.view.name}/{rank.place}"
        return Finding(
            subject=ranks.pod_subject(rank),
            sentence=f"the postStart hook of {what} fails, so the kubelet kills the container: {ranks.quote_message(kill.message)}",
            evidence=(f"{rank.pod}: event {HOOK_FAILED}" if reported else f"{rank.pod}: state {HOOK_ERROR}",),
            steps=(
                f"correct lifecycle.postStart in {observed.template}, or use an init container instead",
                observed.lws(f"logs {place}"),
            ),
            verdict=Verdict.CRASHING if rank.is_ready else None,
        )
    return None


def _find_kill(observed: Observed, group: Group, rank: Rank) -> Kill | None:
    """Return the kill event of a rank's pod, or of the failed pod because of which the group was recreated."""
    run = ranks.recorded_run(rank)
    pod, uid = (run.pod, group.recreations.failed_uid) if run and group.recreations else (rank.pod, rank.uid)
    own = (kill for kill in observed.warnings.kills(observed.view.namespace, pod) if uid and kill.uid == uid)
    return next((kill for kill in (*own, *likely_kills(observed, group, rank)) if not kill.is_probe_failure), None)


def _waiting_kill(observed: Observed, rank: Rank) -> Kill | None:
    """Return a container that waits because of its hook. The kubelet can write the status before the event."""
    for container, reason, message in ranks.waiting_containers(rank):
        if reason == HOOK_ERROR:
            return Kill(container, "postStart hook", rank.uid, message or HOOK_ERROR, observed.now)
    return None
