"""Why a group or a LeaderWorkerSet is not ready, in one sentence. Pure."""

from collections import Counter
from typing import Final

from leaderworkerset.views.groups import Group, View

PASSING: Final = frozenset({"Missing", "Pending", "ContainerCreating", "PodInitializing", "Running", "Completed"})
"""States of every normal start and end. Any other state is a problem, and so is Pending with a reason."""


def first_problem(group: Group) -> str:
    """Return the first rank with a problem, and why; empty where there is none."""
    for rank in group.ranks:
        if rank.why and (rank.state == "Pending" or rank.state not in PASSING):
            return f"{rank.pod}: {rank.why}"
    return ""


def summary(view: View, group: Group) -> str:
    """Describe a group in one line: how many of its ranks are ready, and what the others are."""
    text = f"{view.name} group {group.index}: {group.ready_ranks} of {len(group.ranks)} ranks ready"
    others = Counter(rank.state for rank in group.ranks if not rank.is_ready)
    if others:
        text += f" ({', '.join(f'{count} {state}' for state, count in sorted(others.items()))})"
    return "; ".join(filter(None, [text, first_problem(group)]))


def reasons(view: View) -> str:
    """Return the first rank with a reason for not being ready, and how many others are not."""
    waiting = [rank for group in view.groups for rank in group.ranks if not rank.is_ready]
    if not waiting:
        return ""
    first = next((rank for rank in waiting if rank.why and rank.state != "Missing"), waiting[0])
    others = f" (and {len(waiting) - 1} more ranks)" if len(waiting) > 1 else ""
    return f"; {first.pod} is {first.state}{': ' + first.why if first.why else ''}{others}"
