"""Shows a LeaderWorkerSet with its properties, its cause, and a matrix of its ranks. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeAlias
from urllib.parse import quote

from msgspec.structs import replace

from kuberuntime.client.requests import Selection as Query
from kuberuntime.objects import meta
from kuberuntime.objects.resources import NODES
from lwsctl.dashboard import availableactions
from lwsctl.dashboard.address import Address, Arrangement, PageForm, PageKind
from lwsctl.dashboard.fragments import Fragment, Rendering, region
from lwsctl.dashboard.markup import Safe, join, tag
from lwsctl.dashboard.pages import cells, ranktable, setheader, timeline
from lwsctl.dashboard.pages.page import Page, PageFacts
from lwsctl.dashboard.pages.topologypage import domain_key
from lwsctl.dashboard.snapshot import Snapshot
from lwsctl.diagnosis.document import lines
from lwsctl.model.groups import Group, Rank, root_cause_rank
from lwsctl.model.leaderworkerset import View
from lwsctl.views import groupprogress, rankusage, recreations
from lwsctl.views.grouprows import FEW_GROUPS
from lwsctl.views.reasons import first_problem, summary
from lwsctl.views.wording import format_count

Place: TypeAlias = Callable[[Group, Rank], str]

NARROW: Final = 8
WIDE: Final = 16
"""The maximum number of cells of rows that use one or two columns of the matrix. Longer rows use a full line."""

LISTED: Final = 6
"""The maximum number of groups with a problem that are listed above the matrix.

All of them are marked in the matrix.
"""

HINT: Final = "Select a rank to show its state, log lines, events, and the reason why it is not ready."
"""The panel text if no rank is selected. The space is reserved, so that the layout does not change."""

READ_EVERY: Final = 10.0
"""The interval in seconds for reading events and recorded failures."""


def frame(address: Address, rendering: Rendering) -> Safe:
    """Return the page with its regions."""
    parts = [
        setheader.frame(address, rendering),
        region("div", "facts", rendering),
        region("div", "cause", rendering, class_="steady"),
    ]
    if address.format is PageForm.TABLE:
        return join(parts, ranktable.frame(address.key.name, rendering))
    ways = [
        tag(
            "a",
            f"By {way.value}",
            href=f"{address.path()}?by={way.value}",
            aria_current="true" if way is address.arrangement else None,
        )
        for way in Arrangement
    ]
    grid = tag(
        "table",
        tag("caption", f"The ranks of {address.key.name}", class_="heard"),
        region("thead", "columns", rendering),
        region("tbody", "rows", rendering, role="rowgroup"),
        id="grid",
        role="grid",
        class_=f"grid by-{address.arrangement.value}",
        data_pane=f"pane/{address.key.namespace}/{address.key.name}",
    )
    hint = tag("p", HINT, class_="hint")
    pane = tag("aside", hint, id="pane", class_="pane", aria_label="The selected rank", tabindex=-1)
    past = region("section", "timeline", rendering, class_="past", aria_label="The last hour")
    rows = tag("nav", ways, class_="ways", aria_label="Rows")
    matrix = tag(
        "div",
        rows,
        region("ul", "ills", rendering, class_="ills", aria_label="Groups with a problem"),
        grid,
        past,
        class_="matrix",
    )
    return join(parts, tag("div", matrix, pane, class_="beside"))


def reads(address: Address) -> Sequence[Query]:
    """Return the lists that the view requires.

    These are events for the timeline, nodes for rows by rack, or metrics for the plain table.
    """
    if address.format is PageForm.TABLE:
        return [rankusage.metrics_selector(address.key.namespace, address.key.name)]
    nodes = [Query(NODES)] if address.arrangement is Arrangement.RACK else []
    return [*timeline.reads(address.key), *nodes]


def render(snapshot: Snapshot, address: Address, facts: PageFacts) -> Rendering:
    """Return the fragments, or a message if the set does not exist."""
    view = snapshot.find(address.key)
    if view is None:
        return cells.missing_set_rendering(snapshot, address, "facts", "cause", "ills", "columns", "rows", "timeline")
    rendering: dict[str, list[Fragment]] = {
        "trouble": cells.outdated_notes(snapshot),
        "head": [_header_fragment(snapshot, view)],
        "facts": [setheader.properties_fragment(view), *_progress_fragments(view, snapshot.now)],
        "cause": [cells.cause_fragment(view.diagnosis)],
    }
    if address.format is PageForm.TABLE:
        return rendering | ranktable.render(view, facts, snapshot.now)
    columns, rows = _grid(snapshot, view, address.arrangement, facts)
    past = _timeline_fragment(snapshot, view, facts)
    return rendering | {
        "ills": list(_problem_fragments(view)),
        "columns": [cells.header_row(columns)],
        "rows": rows,
        "timeline": [past],
    }


def _timeline_fragment(snapshot: Snapshot, view: View, facts: PageFacts) -> Fragment:
    """Return the timeline. It is rebuilt only after events are reread."""
    source = (facts.objects, facts.episodes, facts.is_read)
    before = facts.before.get("timeline")
    if before and before[0].source == source:
        return before[0]
    return replace(timeline.timeline_fragment(snapshot, view, facts), source=source)


def text(snapshot: Snapshot, address: Address, _: PageFacts) -> Iterator[str]:
    """Yield the lines of the page in text format."""
    view = snapshot.find(address.key)
    if view is None:
        yield f"{address.key.name} does not exist in namespace {address.key.namespace}"
        return
    yield from lines(view.diagnosis)
    yield ""
    yield from (summary(view, group, snapshot.now) for group in view.groups)


def _progress_fragments(view: View, now: datetime) -> Iterator[Fragment]:
    """Yield the progress that the first groups report, with a progress bar if the total is known."""
    for group in view.groups[:FEW_GROUPS]:
        if group.progress or group.hang:
            progress, words = (
                group.progress,
                f"Group {group.name}: {groupprogress.progress_sentence(group, now) or 'complete'}",
            )
            share = None if progress is None else progress.fraction
            drawn = None if share is None else cells.bar(int(share * 100), 100, words)
            yield cells.update_part(f"advance/{group.name}", "p", words, " ", drawn, class_="advance")


def _header_fragment(snapshot: Snapshot, view: View) -> Fragment:
    own = {
        "data_failed": cells.failed_rank(view),
        "data_groups": view.desired,
        "data_actions": availableactions.set_actions(view),
    }
    return setheader.header_fragment(snapshot, view, **own)


def _problem_fragments(view: View) -> Iterator[Fragment]:
    """Yield the groups with a problem in matrix order, each with a link to the rank that explains it."""
    problems = [(group, rank) for group in view.groups if (rank := root_cause_rank(group.ranks)) is not None]
    for group, rank in problems[:LISTED]:
        href = f"{Address(kind=PageKind.SET, key=view.key).path()}?rank={quote(rank.place)}"
        link = tag("a", rank.place, href=href, data_rank=rank.place)
        yield cells.update_part(f"ill/{group.name}", "li", link, " ", first_problem(group))
    if more := len(problems) - LISTED:
        yield from [cells.update_part("ill/more", "li", f"and {format_count(more, 'group')} more")] if more > 0 else []


def _grid(snapshot: Snapshot, view: View, way: Arrangement, facts: PageFacts) -> tuple[list[str], list[Fragment]]:
    match way:
        case Arrangement.GROUP:
            width = max((len(group.ranks) for group in view.groups), default=0)
            pieces = {piece.key: piece for piece in facts.before.get("rows", ())}
            rows = [_group_row(snapshot, group, pieces, edge=edge) for group, edge in _with_revision_edges(view.groups)]
            rows += [cells.plain_row("more", f"and {view.more} more", "without pods")] if view.more else []
            return ["group", *map(str, range(width)), "why"], rows
        case Arrangement.NODE:
            return ["node", "ranks"], _collect_fragments(view, lambda _, rank: rank.node or "without a node")
        case Arrangement.RACK:
            key = domain_key([view], facts.get(NODES))
            domains = {meta.name(node): meta.labels(node).get(key, "") for node in facts.get(NODES)}
            unnamed = f"without a label {key}" if key else "the rack is unknown"
            return [key or "rack", "ranks"], _collect_fragments(
                view, lambda _, rank: domains.get(rank.node, "") or unnamed
            )
        case Arrangement.REVISION:
            return ["revision", "ranks"], _collect_fragments(view, lambda group, _: group.revision or "none yet")


def _with_revision_edges(groups: Sequence[Group]) -> Iterator[tuple[Group, bool]]:
    """Yield each group, and whether its revision differs from the previous group."""
    last = ""
    for group in groups:
        yield group, bool(last and group.revision and group.revision != last)
        last = group.revision or last


def _group_row(snapshot: Snapshot, group: Group, pieces: Mapping[str, Fragment], *, edge: bool) -> Fragment:
    key = f"g/{group.name}"
    recreation = recreations.sentence(group.recreations, snapshot.now) if group.recreations else ""
    source = (group, recreation, edge)
    if key in pieces and pieces[key].source == source:
        return pieces[key]
    is_ill = bool(recreation) or root_cause_rank(group.ranks) is not None
    row = _matrix_row(
        key, f"group {group.name}", group.ranks, recreation, revision=group.revision if edge else "", is_ill=is_ill
    )
    return replace(row, source=source)


def _row_class(ranks: Sequence[Rank]) -> str:
    """Return the class of a row. Depending on its cells, the row uses one or two columns or a full line."""
    return "" if len(ranks) <= NARROW else "wide" if len(ranks) <= WIDE else "line"


def _collect_fragments(view: View, place: Place) -> list[Fragment]:
    ranks: dict[str, list[Rank]] = {}
    for group in view.groups:
        for rank in group.ranks:
            ranks.setdefault(place(group, rank), []).append(rank)
    return [
        _matrix_row(f"g/{name}", name, ranks[name], format_count(len(ranks[name]), "rank")) for name in sorted(ranks)
    ]


def _matrix_row(
    key: str, title: str, ranks: Sequence[Rank], why: str, *, revision: str = "", is_ill: bool = False
) -> Fragment:
    parts = tuple(map(cells.cell, ranks))
    edge = f"Revision {revision} starts here" if revision else None
    head = tag("th", title.removeprefix("group "), role="rowheader", aria_label=title, title=edge)
    row = tag(
        "tr",
        head,
        [part.html for part in parts],
        tag("td", why, class_="why") if why else None,
        id=key,
        role="row",
        class_=" ".join(filter(None, ["ill" if is_ill else "", "edge" if revision else "", _row_class(ranks)])) or None,
        data_find=True,
    )
    return Fragment(key, row, parts=parts)


PAGE: Final = Page(
    title=lambda address: address.key.name,
    frame=frame,
    render=render,
    text=text,
    reads=reads,
    reads_episodes=True,
    reads_every=READ_EVERY,
    shows_first=lambda address: address.format is not PageForm.TABLE and address.arrangement is not Arrangement.RACK,
)
