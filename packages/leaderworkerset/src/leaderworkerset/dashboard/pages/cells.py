"""The elements of several pages: the cell of a rank, the strip of the groups of a set, causes, bars, links. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Final

from msgspec import Struct

from kuberuntime.objects.meta import ObjectKey
from leaderworkerset.dashboard.address import Address, PageKind
from leaderworkerset.dashboard.markup import Attribute, Content, Safe, joined, tag
from leaderworkerset.dashboard.picture import CellState, Picture, of_group, of_rank
from leaderworkerset.dashboard.pieces import Piece, Rendering
from leaderworkerset.diagnosis.document import headline, state
from leaderworkerset.diagnosis.finding import Diagnosis
from leaderworkerset.views import changes, reasons
from leaderworkerset.views.groups import Rank, View
from leaderworkerset.views.health.verdict import CALM, Verdict

GLYPHS: Final[Mapping[CellState, str]] = {
    CellState.READY: "●",
    CellState.COMPLETED: "✓",
    CellState.STARTING: "◐",
    CellState.MISSING: "○",
    CellState.ENDING: "◌",
    CellState.PROBLEM: "✕",
}
"""The glyph of each condition, so that conditions do not differ in color only."""

VERDICTS: Final[Mapping[Verdict, str]] = {
    Verdict.STUCK: "✕",
    Verdict.CRASHING: "✕",
    Verdict.UNKNOWN: "?",
    Verdict.UNREAD: "?",
    Verdict.PROGRESSING: "◐",
    Verdict.STARTING: "◐",
    Verdict.HEALTHY: "●",
    Verdict.COMPLETE: "✓",
}
"""The glyph of each verdict."""

STRIP: Final = 1000
"""The maximum of groups in a strip; the number of further groups is shown after it."""


def cell(rank: Rank) -> Piece:
    """Return the cell of a rank, with its place, state and reason as its name, which is also its tooltip.

    A set may have 8,000 of them, so the style sheet contains what is the same in all: the glyphs, and the state ready.
    """
    state, key = of_rank(rank), f"c/{rank.place}"
    words = "ready" if state is CellState.READY and not rank.restarts else changes.describe(rank)
    class_name = None if state is CellState.READY else state.value
    return Piece(key, tag("td", id=key, class_=class_name, title=f"{rank.place} {words}"))


def failed_rank(view: View) -> str | None:
    """Return the rank whose problem explains those of the others, which pages select when they are opened."""
    rank = reasons.telling(rank for group in view.groups for rank in group.ranks if not rank.is_ready)
    return None if rank is None or rank.object is None else rank.place


def mark(rank: Rank, owner: str) -> Safe:
    """Return the mark of a rank in a line of marks."""
    state = of_rank(rank)
    return tag("i", GLYPHS[state], class_=state.value, title=f"{owner} {rank.place} {changes.describe(rank)}")


def strip(key: str, view: View) -> Piece:
    """Return a mark for each group; for screen readers the number of groups in each condition."""
    states = [(group, of_group(group)) for group in view.groups]
    counts = Counter(condition for _, condition in states)
    words = ", ".join(f"{counts[condition]} {condition.value}" for condition in CellState if counts[condition])
    marks = [Mark(str(group.name), GLYPHS[is_], is_.value, f"group {group.name}") for group, is_ in states[:STRIP]]
    more = view.more + len(states) - len(marks)
    return marked(key, marks, f"groups: {words or 'none'}", more=f" and {more} more" if more else "")


class Mark(Struct, frozen=True):
    """The mark of a group: its name, glyph, class and tip."""

    name: str
    glyph: str
    condition: str
    tip: str


def marked(key: str, marks: Sequence[Mark], words: str, *, more: str = "", large: bool = False) -> Piece:
    """Return marks in one strip, with words for screen readers; `more` is the text after the marks."""
    parts = [part(f"{key}/{mark.name}", "i", mark.glyph, class_=mark.condition, title=mark.tip) for mark in marks]
    label = part(f"{key}/words", "span", words, class_="heard")
    marks_html = tag("span", [part.html for part in parts], more, aria_hidden="true")
    return Piece(
        key,
        tag("span", label.html, marks_html, id=key, class_="strip large" if large else "strip"),
        parts=(label, *parts),
    )


def part(key: str, name: str, /, *content: Content, **attributes: Attribute) -> Piece:
    """Return an element that changes alone."""
    return Piece(key, tag(name, *content, id=key, **attributes))


def bar(done: int, total: int, label: str) -> Safe:
    """Return a bar of progress."""
    return tag("progress", f"{done} of {total}", value=min(done, total), max=max(total, 1), aria_label=label)


def verdict(diagnosis: Diagnosis, key: str | None = None) -> Safe:
    """Return the verdict as glyph and word."""
    words = f"{VERDICTS[diagnosis.verdict]} {state(diagnosis)}"
    return tag("span", words, id=key, class_=f"verdict {diagnosis.verdict.value}")


def cause(diagnosis: Diagnosis) -> Safe:
    """Return a diagnosis in full: sentence, evidence, next steps, and the lists that were not read."""
    return tag(
        "section",
        tag("h2", verdict(diagnosis), " ", code(diagnosis), " ", diagnosis.title),
        tag("p", diagnosis.sentence),
        _listed("Evidence", diagnosis.evidence),
        _listed(diagnosis.next, map(command, diagnosis.steps)),
        tag("p", f"Not read, so nothing is known of it: {', '.join(diagnosis.unread)}") if diagnosis.unread else None,
        class_="cause",
    )


def cause_piece(key: str, diagnosis: Diagnosis) -> Piece:
    """Return the piece of a diagnosis; screen readers read it out when it changes."""
    return Piece(key, tag("div", cause(diagnosis), id=key), says=spoken(diagnosis))


def spoken(diagnosis: Diagnosis) -> str:
    """Return the words to read out when a cause changes; empty for a set that makes progress."""
    return "" if diagnosis.verdict in CALM else headline(diagnosis)


def trouble(picture: Picture) -> list[Piece]:
    """Return the notice that the picture may be out of date, if there is one."""
    if not picture.trouble:
        return []
    answered = picture.answered
    since = tag("time", f"{answered:%H:%M:%S} UTC", datetime=answered.isoformat()) if answered else None
    note = joined("; the last answer was at ", since) if since else None
    return [Piece("trouble-text", tag("p", "⚠ ", picture.trouble, note, id="trouble-text"), says=picture.trouble)]


def absent(picture: Picture, address: Address, *regions: str) -> Rendering:
    """Return the pieces of the page of a set that does not exist."""
    kind = "DisaggregatedSet" if address.kind is PageKind.WHOLE else "LeaderWorkerSet"
    words = f"{address.key.name}: no such {kind} in namespace {address.key.namespace}"
    keys = [*(view.key for view in picture.views), *(whole.key for whole in picture.sets)]
    others = sorted(key.name for key in keys if key.namespace == address.key.namespace)
    near = get_close_matches(address.key.name, others, n=1)
    lws = f"{picture.commands.lws} -n {address.key.namespace}"
    steps = [f"{lws} get", f"{lws} history {address.key.name}"]
    head = tag(
        "div",
        tag("h1", words),
        tag("p", f"Is {near[0]} meant? ") if near else None,
        _listed("Objects and their records", map(command, steps)),
        id="title",
        class_="empty",
    )
    rendering = {"trouble": trouble(picture), "head": [Piece("title", head)]}
    return rendering | {region: [] for region in regions}


def link(kind: PageKind, key: ObjectKey, *content: str | Safe, **attributes: str | None) -> Safe:
    """Return a link to a page; its address is relative to the base of the server."""
    return tag("a", *content, href=Address(kind=kind, key=key).path() or ".", **attributes)


def table(key: str, header: Iterable[str], body: Safe, caption: str) -> Safe:
    """Return a table with a body, which is a region."""
    head = tag("thead", tag("tr", _names(header)))
    return scrolling(tag("table", tag("caption", caption), head, body, id=key, class_="plain"), caption)


def scrolling(html: Safe, label: str) -> Safe:
    """Return content that is wider than a phone in a box that scrolls, so that the page does not scroll."""
    return tag("div", html, class_="scroll", role="region", aria_label=label, tabindex=0)


def columns(words: Iterable[str], key: str = "column-names") -> Piece:
    """Return the row with the names of columns, for tables whose columns change."""
    return Piece(key, tag("tr", _names(words), id=key))


def tabs(key: ObjectKey, current: PageKind) -> Safe:
    """Return the tabs of a set's pages."""
    links = [
        link(kind, key, word, aria_current="page" if kind is current else None)
        for kind, word in (
            (PageKind.SET, "Ranks"),
            (PageKind.ROLLOUT, "Rollout"),
            (PageKind.LOGS, "Logs"),
            (PageKind.HISTORY, "History"),
        )
    ]
    return tag("nav", links, class_="tabs", aria_label=f"Pages of {key.name}")


def command(line: str) -> Safe | str:
    """Return a next step: a command as code with a button that copies it, other text unchanged."""
    if not line.startswith(("lws ", "kubectl ")):
        return line
    button = tag("button", "Copy", type="button", class_="copy", data_copy=line, aria_label=f"Copy: {line}")
    return joined(tag("code", line), " ", button)


def code(diagnosis: Diagnosis) -> Safe | None:
    """Return the code of a cause, as a link to the page that explains it."""
    return (
        tag("a", tag("code", diagnosis.code), href=f"{PageKind.CAUSE.value}/{diagnosis.code}")
        if diagnosis.code
        else None
    )


def row(key: str, *cells: str | int | Safe, find: str = "") -> Piece:
    """Return a row of a plain table, whose first cell is its head."""
    first, *rest = cells
    html = tag(
        "tr",
        tag("th", first, scope="row"),
        [tag("td", content) for content in rest],
        id=key,
        data_find=find or None,
    )
    return Piece(key, html)


def _names(words: Iterable[str]) -> list[Safe]:
    return [tag("th", word, scope="col") for word in words]


def _listed(title: str, lines: Iterable[str | Safe]) -> Safe | None:
    items = [tag("li", line) for line in lines]
    return joined(tag("h3", title), tag("ul", items)) if items else None
