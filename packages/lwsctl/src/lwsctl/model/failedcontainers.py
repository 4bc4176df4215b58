"""Finds the failed containers of unready ranks, whose logs explain the failure. Pure."""

from collections.abc import Iterator

from kuberuntime.objects import meta, podstate
from kuberuntime.objects.meta import JSONObject
from lwsctl.model.diagnosis import FailedContainer
from lwsctl.model.leaderworkerset import View


def silent_failure(view: View) -> FailedContainer | None:
    """Return the first container that failed without a message. Only its log explains the failure."""
    return next((failed for failed, end in _failures(view) if not podstate.last_lines(end)), None)


def failed_containers(view: View) -> list[FailedContainer]:
    """Return the failed containers in all unready ranks, by group and rank."""
    by_container = {(meta.uid(failed.pod), failed.container): failed for failed, _ in reversed([*_failures(view)])}
    return [*reversed(by_container.values())]  # the later of two failures of a container


def _failures(view: View) -> Iterator[tuple[FailedContainer, JSONObject]]:
    for rank in view.ranks:
        if rank.object is None or rank.is_ready or meta.is_deleting(rank.object):
            continue
        for status in meta.status(rank.object).get("containerStatuses") or []:
            for when in ("state", "lastState"):
                end = (status.get(when) or {}).get("terminated") or {}
                # If the restart was not counted, the last run did not fail. Its node was restarted.
                if podstate.is_failure(end) and (when == "state" or status.get("restartCount")):
                    is_running = "running" in (status.get("state") or {})
                    yield FailedContainer(rank.object, status["name"], when == "lastState" and is_running), end
