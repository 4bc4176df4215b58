"""What several pages show: a cell of a rank, the strip of a set's groups, a cause, a bar, links. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from kuberuntime.objects.meta import ObjectKey
from leaderworkerset.dashboard.address import Address, PageKind
from leaderworkerset.dashboard.markup import Safe, joined, tag
from leaderworkerset.dashboard.picture import CellState, Picture, of_group, of_rank
from leaderworkerset.dashboard.pieces import Piece, Rendering
from leaderworkerset.diagnosis.document import headline
from leaderworkerset.diagnosis.finding import Diagnosis, Verdict
from leaderworkerset.views import changes
from leaderworkerset.views.groups import Rank, View

GLYPHS: Final[Mapping[CellState, str]] = {
    CellState.READY: "●",
    CellState.COMPLETED: "✓",
    CellState.STARTING: "◐",
    CellState.MISSING: "○",
    CellState.PROBLEM: "✕",
}
"""The glyph of each condition, so that no color is needed to tell them apart."""

VERDICTS: Final[Mapping[Verdict, tuple[str, str]]] = {
    Verdict.HEALTHY: ("●", "healthy"),
    Verdict.PROGRESSING: ("◐", "progressing"),
    Verdict.STUCK: ("✕", "stuck"),
    Verdict.UNKNOWN: ("?", "not ready"),
}

STRIP: Final = 1000
"""The maximum of groups in a strip; more are counted behind it."""


def cell(rank: Rank) -> Safe:
    """Return the cell of a rank: its glyph, and for readers and as a tip its place, state and reason."""
    found, words = of_rank(rank), f"{rank.place} {changes.describe(rank)}"
    return tag(
        "td",
        GLYPHS[found],
        id=f"c/{rank.place}",
        role="gridcell",
        tabindex=-1,
        class_=found.value,
        data_rank=rank.place,
        title=words,
        aria_label=words,
    )


def mark(rank: Rank, owner: str) -> Safe:
    """Return the mark of a rank among those of others."""
    found = of_rank(rank)
    return tag("i", GLYPHS[found], class_=found.value, title=f"{owner} {rank.place} {changes.describe(rank)}")


def strip(view: View) -> Safe:
    """Return a cell for each group; for readers the number of groups in each condition."""
    found = [(group, of_group(group)) for group in view.groups]
    counts = Counter(condition for _, condition in found)
    words = ", ".join(f"{counts[condition]} {condition.value}" for condition in CellState if counts[condition])
    cells = (tag("i", GLYPHS[is_], class_=is_.value, title=f"group {group.name}") for group, is_ in found[:STRIP])
    more = len(found) - STRIP + view.more if len(found) > STRIP else view.more
    return tag(
        "span",
        cells,
        f" and {more} more" if more else None,
        class_="strip",
        role="img",
        aria_label=f"groups: {words or 'none'}",
    )


def bar(done: int, wanted: int, label: str) -> Safe:
    """Return a bar of progress."""
    return tag("progress", f"{done} of {wanted}", value=min(done, wanted), max=max(wanted, 1), aria_label=label)


def verdict(told: Diagnosis) -> Safe:
    """Return the verdict as glyph and word."""
    glyph, word = VERDICTS[told.verdict]
    return tag("span", f"{glyph} {word}", class_=f"verdict {told.verdict.value}")


def cause(told: Diagnosis) -> Safe:
    """Return a diagnosis in full: sentence, evidence, next steps, and what was not read."""
    code = tag("code", told.code) if told.code else None
    return tag(
        "section",
        tag("h2", verdict(told), " ", code, " ", told.title),
        tag("p", told.sentence),
        _listed("Evidence", told.evidence),
        _listed("Next", told.steps),
        tag("p", f"Not read, so nothing is known of it: {', '.join(told.unread)}") if told.unread else None,
        class_="cause",
    )


def cause_piece(key: str, told: Diagnosis) -> Piece:
    """Return the piece of a diagnosis; it is read out when it changes."""
    return Piece(key, tag("div", cause(told), id=key), says=spoken(told))


def spoken(told: Diagnosis) -> str:
    """Return what is read out when a cause changes; nothing of a set that only makes progress."""
    return "" if told.verdict is Verdict.PROGRESSING else headline(told)


def trouble(picture: Picture) -> list[Piece]:
    """Return the notice that the picture may be out of date, if there is one."""
    if not picture.trouble:
        return []
    return [Piece("trouble-text", tag("p", "⚠ ", picture.trouble, id="trouble-text"), says=picture.trouble)]


def absent(picture: Picture, address: Address, *regions: str) -> Rendering:
    """Return the pieces of the page of a set that does not exist: only that it does not."""
    kind = "DisaggregatedSet" if address.kind is PageKind.WHOLE else "LeaderWorkerSet"
    words = f"{address.key.name}: no such {kind} in namespace {address.key.namespace}"
    shown = {"trouble": trouble(picture), "head": [Piece("title", tag("h1", words, id="title"))]}
    return shown | {region: [] for region in regions}


def link(kind: PageKind, key: ObjectKey, *content: str | Safe, **attributes: str) -> Safe:
    """Return a link to a page; its address is relative to the base of the server."""
    return tag("a", *content, href=Address(kind=kind, key=key).path() or ".", **attributes)


def table(key: str, header: Iterable[str], body: Safe, caption: str) -> Safe:
    """Return a table with a body, which is a region."""
    return tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", _names(header))),
        body,
        id=key,
        class_="plain",
    )


def columns(words: Iterable[str], key: str = "column-names") -> Piece:
    """Return the row with the names of columns, where these change."""
    return Piece(key, tag("tr", _names(words), id=key))


def row(key: str, *cells: str | int | Safe, find: str = "") -> Piece:
    """Return a row of a plain table, whose first cell is its head."""
    first, *rest = cells
    html = tag("tr", tag("th", first, scope="row"), [tag("td", one) for one in rest], id=key, data_find=find or None)
    return Piece(key, html)


def _names(words: Iterable[str]) -> list[Safe]:
    return [tag("th", word, scope="col") for word in words]


def _listed(title: str, lines: Iterable[str]) -> Safe | None:
    found = [tag("li", line) for line in lines]
    return joined(tag("h3", title), tag("ul", found)) if found else None
