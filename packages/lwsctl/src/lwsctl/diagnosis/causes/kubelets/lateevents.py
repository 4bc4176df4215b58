"""Kills whose events are still missing: a kubelet under load writes its events up to minutes late. Pure.

If a kubelet killed former pods of a name for a probe or hook, and no event of the present pod is as new as the end of its
run, which answered a signal, then the same kill is the likely cause.
"""

from collections.abc import Iterator

from kuberuntime.objects import timestamps
from kuberuntime.objects.deaths import REMEMBERED
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.kubeletkills import Kill
from lwsctl.diagnosis import exits, ranks
from lwsctl.diagnosis.observed import Observed
from lwsctl.views.groups import Group, Rank

ANSWERS = exits.BY_OTHERS | {0}
"""The exit codes of programs that were asked to end."""


def likely_kills(observed: Observed, group: Group, rank: Rank) -> Iterator[Kill]:
    """Yield the kills of former pods that explain the last run of a rank, the newest first."""
    for pod, uid, container, end in _ended(group, rank):
        events = observed.warnings.of_any_type(observed.view.namespace, "Pod", pod)
        finished = timestamps.moment(str(end.get("finishedAt") or ""))
        if end.get("exitCode") not in ANSWERS or any(event.uid == uid and event.last >= finished for event in events):
            continue
        for kill in observed.warnings.kills(observed.view.namespace, pod):
            if kill.uid != uid and kill.container in ("", container) and observed.now - kill.last < REMEMBERED:
                yield kill


def _ended(group: Group, rank: Rank) -> Iterator[tuple[str, str, str, JSONObject]]:
    """Yield pod, its UID, container and end of the last runs of a rank; a recorded run has no time."""
    recreation = group.recreations
    for run in rank.deaths:
        if run.is_recorded and recreation is not None and recreation.failed_uid:
            yield run.pod, recreation.failed_uid, run.container, run.end
    for status in ranks.statuses(rank):
        last = (status.get("lastState") or {}).get("terminated") if status.get("restartCount") else None
        if end := (status.get("state") or {}).get("terminated") or last:
            yield rank.pod, rank.uid, str(status.get("name")), end
