"""Shows a plain table of all ranks of a set, with their usage if it is measured. Pure."""

from datetime import datetime
from typing import Final

from kuberuntime.objects.resources import POD_METRICS
from lwsctl.dashboard.fragments import Fragment, Rendering, region
from lwsctl.dashboard.markup import Safe, tag
from lwsctl.dashboard.pages import cells
from lwsctl.dashboard.pages.page import PageFacts
from lwsctl.model.groups import Group, Rank
from lwsctl.model.leaderworkerset import View
from lwsctl.model.usage import with_usage
from lwsctl.views import devices, rankusage, wording

HEADER: Final = ("Place", "Pod", "State", "Ready", "Restarts", "Node", "Revision", "Why")
COLUMNS: Final = "rank-columns"
ROWS: Final = "ranks"
"""The regions of the table. Other pages do not use them, because a saved page contains the table below the grid."""


def frame(name: str, rendering: Rendering) -> Safe:
    """Return the table with its regions."""
    caption = f"All ranks of {name}"
    parts = [tag("caption", caption), region("thead", COLUMNS, rendering), region("tbody", ROWS, rendering)]
    return cells.scroll_box(tag("table", parts, id="plain", class_="plain"), caption)


def render(view: View, facts: PageFacts, now: datetime) -> dict[str, list[Fragment]]:
    """Return the fragments. The columns for usage and GPUs exist only if a rank has a value."""
    (view,) = with_usage([view], facts.get(POD_METRICS))
    usage = rankusage.resources(view.ranks)
    ranks = [(group, rank) for group in view.groups for rank in group.ranks]
    own = [" ".join(devices.pod_devices(rank.object)) for _, rank in ranks]
    has_devices = any(own)
    header = [*HEADER, *(rankusage.TITLES[name] for name in usage), *(["Devices"] if has_devices else [])]
    rows = [
        _rank_row(group, rank, *rankusage.usage_cells(rank, usage, now), *([uuids or "-"] if has_devices else []))
        for (group, rank), uuids in zip(ranks, own, strict=True)
    ]
    return {COLUMNS: [cells.header_row(header, "rank-column-names")], ROWS: rows}


def _rank_row(group: Group, rank: Rank, *uses: str) -> Fragment:
    return cells.plain_row(
        f"t/{rank.place}",
        rank.place,
        rank.pod,
        wording.state(rank),
        "yes" if rank.is_ready else "no",
        rank.restarts,
        rank.node,
        group.revision,
        wording.reason(rank),
        *uses,
        find=f"{rank.place} {rank.pod} {rank.node}",
    )
