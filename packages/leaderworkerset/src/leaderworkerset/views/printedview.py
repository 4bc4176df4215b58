"""A view as a short text, for Python programs and notebooks that print it. Pure."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from leaderworkerset.views.groups import Rank, View

HEADER: Final = ("GROUP", "RANK", "POD", "STATE", "READY", "RESTARTS", "WHY")


def summary(view: "View") -> str:
    """Return one line about a LeaderWorkerSet."""
    return f"{view.namespace}/{view.name}: {view.ready} of {view.desired} groups ready"


def text(view: "View") -> str:
    """Return the summary and a table of the ranks, without their objects."""
    rows = [HEADER, *(_cells(rank) for group in view.groups for rank in group.ranks)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join([summary(view), *("   ".join(map(str.ljust, row, widths)).rstrip() for row in rows)])


def _cells(rank: "Rank") -> tuple[str, ...]:
    ready = "yes" if rank.is_ready else "no"
    return (str(rank.group), str(rank.index), rank.pod, rank.state, ready, str(rank.restarts), rank.why)
