"""Hooks after the start of a container that fail, so that the kubelet kills it. Pure."""

import re
from typing import Final

from leaderworkerset.diagnosis import ranks
from leaderworkerset.diagnosis.finding import Finding, cause
from leaderworkerset.diagnosis.observed import Observed
from leaderworkerset.diagnosis.patterns import READ
from leaderworkerset.diagnosis.ranks import is_placed_or_recorded
from leaderworkerset.views.groups import Group, Rank

FAILED: Final = "FailedPostStartHook"
CONTAINER: Final = re.compile(r"for Container \"(?P<container>[^\"]+)\"")


@cause(
    code="LWS-E115",
    title="a postStart hook fails",
    meaning="The kubelet runs lifecycle.postStart after it started a container, and kills the container if that fails. The exit code of the "
    "program says nothing then.",
    remedy="Correct the hook in the pod template, or do its work in an init container.",
)
def start_hook_fails(observed: Observed) -> Finding | None:
    """Find a container that was killed because its hook failed."""
    for group, rank in observed.unready:
        messages = _failures(observed, group, rank) if is_placed_or_recorded(rank) else []
        if not messages:
            continue
        match = CONTAINER.search(messages[0][:READ])
        hooked = [
            str(container.get("name"))
            for container in ((rank.object or {}).get("spec") or {}).get("containers") or []
            if (container.get("lifecycle") or {}).get("postStart")
        ]
        container = match["container"] if match else next(iter(hooked), "")
        what = f"container {container} of pod {rank.pod}" if container else f"pod {rank.pod}"
        place = f"{observed.view.name}/{rank.place}"
        return Finding(
            subject=ranks.subject(rank),
            sentence=f"the postStart hook of {what} fails, so the kubelet kills the container: {ranks.quote(messages[0])}",
            evidence=(f"{rank.pod}: event {FAILED}",),
            steps=(
                f"correct lifecycle.postStart in {observed.template}, or do its work in an init container",
                observed.lws(f"logs {place}"),
            ),
        )
    return None


def _failures(observed: Observed, group: Group, rank: Rank) -> list[str]:
    """Return the messages about a rank's pod, or about the failed pod for which its group was recreated."""
    failed = group.recreations.failed_uid if group.recreations and any(run.is_recorded for run in rank.deaths) else ""
    warnings = observed.warnings.about(observed.view.namespace, "Pod", rank.pod)
    own = [event for event in warnings if event.reason == FAILED and event.uid and event.uid in (rank.uid, failed)]
    return [event.message for event in sorted(own, key=lambda event: event.last, reverse=True)]
