"""Describes the recreations of a group, and its restarts in place (docs/adr/0003). Pure."""

from datetime import datetime

from leaderworkerset.api import restartannotation
from lwsctl.model.failurehistory import Recreations
from lwsctl.model.groups import Group
from lwsctl.views.wording import duration, format_count


def note(group: Group, now: datetime) -> str:
    """Return the recreations of a group in a sentence, or an empty string if they are over."""
    return "" if group.recreations is None or group.has_recovered(now) else sentence(group.recreations, now)


def sentence(recreation: Recreations, now: datetime) -> str:
    """Describe the recreations of a group, with their number, the reason, and the time of the next attempt.

    >>> from datetime import UTC, timedelta
    >>> now = datetime(2026, 1, 1, tzinfo=UTC)
    >>> sentence(Recreations(count=1, failed_pod="web-0-1", due=now - timedelta(minutes=3)), now)
    'recreated 1 time, last 3m ago because pod web-0-1 failed'
    >>> sentence(Recreations(count=3, failed_pod="web-0-1", due=now + timedelta(seconds=18), is_waiting=True), now)
    'recreated 2 times; pod web-0-1 failed again, next attempt in 18s'
    >>> sentence(Recreations(count=3, failed_pod="web-0", due=now, is_exhausted=True, failure="app: exit code 1"), now)
    'recreated 2 times; pod web-0 failed again (app: exit code 1), and no restarts remain; the pods are kept for diagnosis'
    """
    attempts = f"recreated {format_count(recreation.done, 'time')}"
    cause = f"pod {recreation.failed_pod} failed"
    reason = f" ({recreation.reason})" if recreation.reason else ""
    if recreation.is_exhausted:
        return f"{attempts}; {cause} again{reason}, and no restarts remain; the pods are kept for diagnosis"
    if not recreation.is_waiting:
        return f"{attempts}, last {duration(now - recreation.due)} ago because {cause}{reason}"
    wait = f"in {duration(recreation.due - now)}" if recreation.due > now else "now"
    return f"{attempts}; {cause} again{reason}, next attempt {wait}"


def in_place(group: Group, now: datetime) -> str:
    """Describe the pod that restarted all containers in place and the number of restarts.

    Return an empty string if there is none.

    If there are several groups, an unready group is chosen first, then the group with the most restarts.
    """
    notes = [(rank.pod, restartannotation.read(rank.object or {})) for rank in group.ranks]
    restarted_pods = [(pod, note) for pod, note in notes if note.restarts]
    if not restarted_pods:
        return ""
    pod, note = min(restarted_pods, key=lambda pair: (pair[1].started_at is None, -pair[1].restarts))
    since = f", not ready for {duration(now - note.started_at)}" if note.started_at is not None else ""
    others = f" (and {format_count(len(restarted_pods) - 1, 'more pod')})" if len(restarted_pods) > 1 else ""
    return f"pod {pod} restarted all its containers in place {format_count(note.restarts, 'time')}{since}{others}"
