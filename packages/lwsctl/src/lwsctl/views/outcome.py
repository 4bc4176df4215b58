"""Determines the outcome of a run, in which all ranks complete or a rank fails repeatedly. Pure."""

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct, field

from kuberuntime.objects import meta, podstate
from kuberuntime.objects.meta import JSONObject
from kuberuntime.texts.masking import Mask
from leaderworkerset.api.conditions import COMPLETE, FAILED
from leaderworkerset.api.groupname import GroupEnd
from lwsctl.model.groups import root_cause_rank
from lwsctl.model.leaderworkerset import View
from lwsctl.views import wording
from lwsctl.views.wording import format_count, format_groups, join_names

PLACES: Final = 8
"""The maximum number of ranks that are listed for one state."""


def is_over(lws: JSONObject | None) -> bool:
    """Return whether a set was deleted (None), is complete, or has reached its deadline with its latest spec."""
    if lws is None:
        return True
    ends = (COMPLETE.type, FAILED.type)
    return meta.is_observed(lws) and any(meta.is_condition_true(lws, end) for end in ends)


def count_of_ended(view: View) -> str:
    """Return the number of ranks that exited with code 0, and the other ranks."""
    total = sum(len(group.ranks) for group in view.groups)
    text = f"{total - len(view.incomplete_ranks)} of {format_count(total, 'rank')} exited with code 0"
    return "; ".join(filter(None, [text, not_ended(view)]))


def not_ended(view: View) -> str:
    """Return the ranks that are not complete, by state, and the problem that explains them.

    Return an empty string if all ranks have completed.
    """
    waiting = [rank for group, rank in view.incomplete_ranks if group.end is None]
    if not waiting:
        return ""
    by_state: dict[str, list[str]] = {}
    for rank in waiting:
        by_state.setdefault(wording.state(rank), []).append(rank.place)
    states = "; ".join(f"{join_names(places, PLACES)} ({state})" for state, places in by_state.items())
    problem = root_cause_rank(waiting)
    return f"not complete: {states}" + (f"; {problem.pod}: {problem.why}" if problem else "")


class Failures(Struct):
    """Counts the failures of each rank. Terminating a rank to recreate its group is not considered a failure."""

    limit: int
    counts: dict[str, int] = field(default_factory=dict)
    counted: set[tuple[str, str]] = field(default_factory=set)

    def verdict(self, views: Iterable[View]) -> str | None:
        """Return the reason why the run failed, or None if it may continue."""
        for view in views:
            if late := [group.name for group in view.groups if group.end is GroupEnd.LATE]:
                return f"{view.name}: {format_groups(late)} did not complete before the deadline"
            for rank in view.ranks:
                if rank.object is None or meta.is_deleting(rank.object):
                    continue
                for ident, end in failed_ends(rank.object):
                    if (meta.uid(rank.object), ident) in self.counted:
                        continue
                    self.counted.add((meta.uid(rank.object), ident))
                    place = f"{view.name}/{rank.place}"
                    self.counts[place] = self.counts.get(place, 0) + 1
                    if self.counts[place] > self.limit:
                        return (
                            f"{place} failed {format_count(self.counts[place], 'time')}, last with {describe_exit(end)}"
                        )
        return None


def describe_exit(end: JSONObject) -> str:
    r"""Return the exit code and reason of a terminated container, and then its last lines, if any.

    >>> describe_exit({"exitCode": 3, "reason": "Error", "message": "boom\n"})
    'exit code 3 (Error):\n  boom'
    >>> describe_exit({"exitCode": 137})
    'exit code 137'
    """
    reason = f" ({end['reason']})" if end.get("reason") else ""
    lines = "".join(f"\n  {line}" for line in Mask().lines(podstate.last_lines(end)))
    return f"exit code {end['exitCode']}{reason}{':' if lines else ''}{lines}"


def failed_ends(pod: JSONObject) -> Iterator[tuple[str, JSONObject]]:
    """Yield an identifier for each failed container run."""
    for status in meta.status(pod).get("containerStatuses") or []:
        for when in ("lastState", "state"):
            end = (status.get(when) or {}).get("terminated") or {}
            if podstate.is_failure(end):
                yield end.get("containerID") or f"{status['name']} {end.get('finishedAt')}", end
