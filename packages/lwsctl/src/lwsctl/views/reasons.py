"""Describes in one sentence why a group or LeaderWorkerSet is not ready. Pure."""

from collections import Counter
from datetime import datetime

from kuberuntime.objects import errorlines, podstate
from kuberuntime.texts.masking import mask_message
from lwsctl.model.groups import MISSING, Group, Rank, root_cause_rank
from lwsctl.model.leaderworkerset import View
from lwsctl.views import recreations, wording


def first_problem(group: Group) -> str:
    """Return the rank whose problem explains the other problems and its reason, or an empty result."""
    problem = root_cause_rank(group.ranks)
    return f"{problem.pod}: {problem.why}" if problem else ""


def others_than_ready(group: Group) -> str:
    """Return the number of unready ranks by state, such as `2 Pending, 1 completed`."""
    others = Counter(wording.state(rank) for rank in group.ranks if not rank.is_ready)
    return ", ".join(f"{count} {state}" for state, count in sorted(others.items()))


def summary(view: View, group: Group, now: datetime) -> str:
    """Describe a group in one line with its ready ranks, the states of the other ranks, and its recreations."""
    ranks, others = wording.format_count(len(group.ranks), "rank"), others_than_ready(group)
    if group.ranks and all(rank.state == "Completed" for rank in group.ranks):
        text = f"{ranks} completed"
    else:
        text = f"{group.ready_ranks} of {ranks} ready" + (f" ({others})" if others else "")
    text = f"{view.name} group {group.name}: {text}"
    recreation_text = recreations.sentence(group.recreations, now) if group.recreations else ""
    return "; ".join(filter(None, [text, first_problem(group), recreation_text]))


def first_waiting(view: View) -> tuple[Rank, int] | None:
    """Return the most informative rank and the number of other unready ranks, or None if all ranks are ready."""
    waiting = view.unready
    if not waiting:
        return None
    with_reason = (rank for rank in waiting if rank.why and rank.state != MISSING)
    first = root_cause_rank(waiting) or next(with_reason, waiting[0])
    return first, len(waiting) - 1


def reasons(view: View) -> str:
    """Return the most informative rank and its reason, followed by the number of other unready ranks."""
    text = brief(view)
    return f"; {text}" if text else ""


def brief(view: View) -> str:
    """Return the part of `reasons` before the semicolon, or an empty string if all ranks are ready."""
    first_and_count = first_waiting(view)
    if first_and_count is None:
        return ""
    first, count = first_and_count
    others = f" (and {wording.format_count(count, 'more rank')})" if count else ""
    why = wording.reason(first)
    return f"{first.pod} {_crash(first) or f'is {wording.state(first)}' + (why and f': {why}')}{others}"


def _crash(rank: Rank) -> str:
    """Return the quoted error and the exit code of a container in CrashLoopBackOff, or an empty string."""
    for status in podstate.container_statuses(rank.object or {}):
        waiting = (status.get("state") or {}).get("waiting") or {}
        ended = (status.get("lastState") or {}).get("terminated") or {}
        line, *_ = errorlines.first_error(podstate.last_lines(ended))
        if waiting.get("reason") == rank.state == "CrashLoopBackOff" and line:
            return f'{rank.state}: "{mask_message(line)}" (exit {ended.get("exitCode")})'
    return ""


def behind(view: View) -> str:
    """Return a note if the status counts differ from the pods, or an empty string. Pods change before the status."""
    ready = sum(group.is_ready for group in view.groups)
    revisions = sorted(Counter(group.revision for group in view.groups if group.revision).values())
    facts = (
        [f"{wording.format_count(ready, 'group')} {'is' if ready == 1 else 'are'} ready"] if ready != view.ready else []
    )
    is_counted = view.up_to_date in (*revisions, sum(revisions)) or not (view.up_to_date or view.is_updating)
    if len(revisions) > 1 and not is_counted:
        facts.append(f"the revisions have {' and '.join(map(str, revisions))} groups")
    return f"the status of {view.name} is outdated: according to its pods, {', and '.join(facts)}" if facts else ""
