"""Builds the header for all pages of a set, with its name, verdict, state age, groups and properties. Pure."""

from lwsctl.dashboard.address import Address, PageKind
from lwsctl.dashboard.fragments import Fragment, Rendering, region
from lwsctl.dashboard.markup import Attribute, Safe, join, tag
from lwsctl.dashboard.pages import cells, totals
from lwsctl.dashboard.snapshot import Snapshot
from lwsctl.model.disaggregatedset import SetView, Shown
from lwsctl.model.leaderworkerset import View
from lwsctl.views.wording import format_count, join_names

MOST_REVISIONS = 3
"""The maximum number of group revisions that are listed."""


def frame(address: Address, rendering: Rendering) -> Safe:
    """Return the header region, and the tabs for the pages of a set."""
    home = PageKind.WHOLE if address.is_disaggregatedset else PageKind.SET
    return join(region("header", "head", rendering), cells.tabs(address.key, address.kind, home))


def header_fragment(snapshot: Snapshot, item: Shown, **attributes: Attribute) -> Fragment:
    """Return the name, and the state as a part that is updated separately. `attributes` are data for scripts."""
    state = cells.state_fragment("state", snapshot, item)
    html = tag("div", _name_html(snapshot, item), state.html, id="title", **attributes)
    return Fragment("title", html, parts=(state,))


def properties_fragment(view: View) -> Fragment:
    """Return the properties of a set, which are the image, revision, size, accelerators and nodes."""
    revisions = list(dict.fromkeys(group.revision for group in view.groups if group.revision))
    own = totals.accelerators([view])
    idle = f", {own.idle:,} idle" if own.idle and not view.is_ready else ""
    entries = {
        "Image": totals.worker_image(view),
        "Revision": join_names(revisions, MOST_REVISIONS),
        "Size": format_count(view.size, "rank"),
        "GPUs": f"{own.requested:,}{idle}" if own.requested else "",
        "Nodes": str(totals.node_count(view) or ""),
    }
    items = [tag("div", tag("dt", name), tag("dd", value)) for name, value in entries.items() if value]
    return Fragment("facts-list", tag("dl", items, id="facts-list", class_="facts"))


def _name_html(snapshot: Snapshot, item: Shown) -> Safe:
    owner = snapshot.owners.get(item.key)
    if isinstance(item, SetView):
        kind = join(" ", tag("small", "DisaggregatedSet"))
    elif owner is None:
        kind = Safe("")
    else:
        kind = join(" ", tag("small", "part of ", cells.page_link(PageKind.WHOLE, owner.key, owner.name)))
    return tag("h1", item.name, " ", tag("small", item.namespace), kind)
