"""Finds kills whose events are late. An overloaded kubelet can write events after minutes. Pure.

If a kubelet killed previous pods with the same name because of a probe or hook, a run of the current pod was
terminated by a signal, and there is no later event about the pod, the likely cause is the same kill.
"""

from collections.abc import Iterator

from kuberuntime.objects import timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.terminations import REMEMBERED
from leaderworkerset.api.kubeletkills import Kill
from lwsctl.diagnosis import exits, ranks
from lwsctl.diagnosis.observed import Observed
from lwsctl.model.groups import Group, Rank

ANSWERS = exits.BY_OTHERS | {0}
"""Exit codes of processes that were requested to terminate."""


def likely_kills(observed: Observed, group: Group, rank: Rank) -> Iterator[Kill]:
    """Yield the kills of previous pods that explain a rank's last run, the latest first."""
    for pod, uid, container, end in _terminated_runs(group, rank):
        events = observed.warnings.of_any_type(observed.view.namespace, "Pod", pod)
        finished = timestamps.moment(str(end.get("finishedAt") or ""))
        if end.get("exitCode") not in ANSWERS or any(event.uid == uid and event.last >= finished for event in events):
            continue
        for kill in observed.warnings.kills(observed.view.namespace, pod):
            if kill.uid != uid and kill.container in ("", container) and observed.now - kill.last < REMEMBERED:
                yield kill


def _terminated_runs(group: Group, rank: Rank) -> Iterator[tuple[str, str, str, JSONObject]]:
    """Yield the pod, its UID, the container and the end time of a rank's last runs.

    Recorded runs have no end time.
    """
    recreation = group.recreations
    for run in rank.deaths:
        if run.is_recorded and recreation is not None and recreation.failed_uid:
            yield run.pod, recreation.failed_uid, run.container, run.end
    for status in ranks.container_statuses(rank):
        last = (status.get("lastState") or {}).get("terminated") if status.get("restartCount") else None
        if end := (status.get("state") or {}).get("terminated") or last:
            yield rank.pod, rank.uid, str(status.get("name")), end
