"""Defines elements that pages share, such as rank cells, group meters, causes, times and links. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from itertools import groupby
from typing import Final

from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import ObjectKey
from leaderworkerset.api.conditions import AVAILABLE, COMPLETE, UPDATE_IN_PROGRESS
from lwsctl.dashboard.address import Address, PageKind
from lwsctl.dashboard.fragments import Fragment, Rendering
from lwsctl.dashboard.markup import Attribute, Content, Safe, join, tag
from lwsctl.dashboard.snapshot import Snapshot, set_location
from lwsctl.diagnosis.document import headline
from lwsctl.diagnosis.document import verdict_text as state_of
from lwsctl.diagnosis.logerrors import INDENT
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.model.disaggregatedset import Shown
from lwsctl.model.groups import Rank, Readiness, root_cause_rank
from lwsctl.model.health import AS_DESIRED, CALM, Verdict, ready_or_complete
from lwsctl.model.leaderworkerset import View
from lwsctl.views import changes
from lwsctl.views.wording import format_count

GLYPHS: Final[Mapping[Readiness, str]] = {
    Readiness.READY: "●",
    Readiness.COMPLETED: "✓",
    Readiness.STARTING: "◐",
    Readiness.MISSING: "○",
    Readiness.ENDING: "◌",
    Readiness.PROBLEM: "✕",
}
"""The symbol of each condition, so that conditions differ not only in color."""

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
"""The symbol of each verdict."""


def cell(rank: Rank) -> Fragment:
    """Return the table cell of a rank. Its name and tooltip contain the path, state and reason.

    Because a set may have 8,000 cells, common content, such as the glyphs and the ready state, is in the style sheet.
    """
    state, key = rank.readiness, f"c/{rank.place}"
    words = "ready" if state is Readiness.READY and not rank.restarts else changes.describe(rank)
    class_name = None if state is Readiness.READY else state.value
    return Fragment(key, tag("td", id=key, class_=class_name, title=f"{rank.place} {words}"))


def failed_rank(view: View) -> str | None:
    """Return the rank whose problem explains all other problems. Pages initially select this rank."""
    rank = root_cause_rank(view.unready)
    return None if rank is None or rank.object is None else rank.place


def rank_symbol(rank: Rank, owner: str) -> Safe:
    """Return the symbol of a rank in a row of ranks."""
    state = rank.readiness
    return tag("i", GLYPHS[state], class_=state.value, title=f"{owner} {rank.place} {changes.describe(rank)}")


def update_part(key: str, name: str, /, *content: Content, **attributes: Attribute) -> Fragment:
    """Return a page element that is updated separately."""
    return Fragment(key, tag(name, *content, id=key, **attributes))


def bar(done: int, total: int, label: str) -> Safe:
    """Return a progress bar."""
    return _stacked_bar([(Readiness.READY, done)], total, aria_label=label, role="img")


def meter(views: Iterable[View]) -> Safe:
    """Return a bar with the groups of sets by condition. The numbers are in the text next to the bar."""
    own = list(views)
    running = [view for view in own if not view.is_complete]
    counts = Counter(group.readiness for view in running for group in view.groups)
    counts[Readiness.READY] += counts.pop(Readiness.COMPLETED, 0) + sum(
        view.desired for view in own if view.is_complete
    )
    amounts = [(state, counts[state]) for state in (Readiness.READY, Readiness.STARTING, Readiness.PROBLEM)]
    return _stacked_bar(amounts, sum(counts.values()) + sum(view.more for view in running), aria_hidden="true")


def _stacked_bar(amounts: Iterable[tuple[Readiness, int]], total: int, **attributes: Attribute) -> Safe:
    """Return a stacked bar of the amounts. Amounts other than zero are always visible."""
    rects, at = [], 0
    for condition, amount in amounts:
        width = min(max(round(100 * amount / max(total, 1)), 4 if amount else 0), 100 - at)
        rects += [tag("rect", class_=condition.value, x=at, width=width, height=1)] if width else []
        at += width
    return tag("svg", rects, class_="meter", viewBox="0 0 100 1", preserveAspectRatio="none", **attributes)


def state_fragment(key: str, snapshot: Snapshot, item: Shown) -> Fragment:
    """Return the verdict of a set, the time since which it is in this state, and its groups."""
    groups = tag("span", meter(item.leaderworkersets), f" {groups_in_words(item)}", class_="groups")
    return update_part(key, "p", verdict_html(item.diagnosis), " ", state_time(snapshot, item), groups, class_="state")


def groups_in_words(item: Shown) -> str:
    """Return the number of ready or complete groups of a set, and of updated groups during a rollout."""
    ready = ready_or_complete(item.diagnosis.verdict, item.ready, item.desired)
    updated = f", {item.updated} updated" if item.is_updating else ""
    return f"{ready} of {format_count(item.desired, 'group')} {'complete' if ready > item.ready else 'ready'}{updated}"


def state_time(snapshot: Snapshot, item: Shown) -> Safe | None:
    """Return the time since which a set is in its state, or None if unknown. The browser shows the age."""
    seen = snapshot.order.since.get(set_location(item))
    text = (
        timestamps.render(item.diagnosis.since)
        if item.diagnosis.since
        else _transition(item) or (timestamps.render(seen) if seen else "")
    )
    return timestamp_html(text, class_="since") if text else None


def timestamp_html(text: str, **attributes: Attribute) -> Safe:
    """Return a timestamp as a time of day. The browser shows the age."""
    return tag("time", text[11:19] or text, datetime=text, **attributes)


def _transition(item: Shown) -> str:
    """Return the time at which a set entered its state according to its conditions, or an empty string."""
    is_desired = item.diagnosis.verdict in AS_DESIRED
    kinds = (COMPLETE, AVAILABLE) if is_desired else (UPDATE_IN_PROGRESS, AVAILABLE)
    for kind in kinds:
        condition = meta.find_condition(item.object, kind.type) or {}
        if condition.get("status") == str(is_desired or kind is not AVAILABLE):
            return str(condition.get("lastTransitionTime") or "")
    return ""


def sentence(text: str, *names: str) -> str:
    """Return a sentence that starts with a capital letter, unless it starts with an object name.

    >>> sentence("no node has space"), sentence("web-0 is Pending"), sentence("web is Pending", "web")
    ('No node has space', 'web-0 is Pending', 'web is Pending')
    """
    first = text.partition(" ")[0]
    return text[:1].upper() + text[1:] if first.isalpha() and first not in names else text


def verdict_html(diagnosis: Diagnosis) -> Safe:
    """Return the verdict as a symbol and a word."""
    glyph, words = tag("i", VERDICTS[diagnosis.verdict]), tag("span", state_of(diagnosis).capitalize())
    return tag("span", glyph, " ", words, class_=f"verdict {diagnosis.verdict.value}")


def cause_html(diagnosis: Diagnosis) -> Safe:
    """Return a complete diagnosis with its sentence, evidence, next steps, and the lists that were not read."""
    return tag(
        "section",
        tag("h2", sentence(diagnosis.title or state_of(diagnosis)), " ", code_link(diagnosis)),
        tag("p", sentence(diagnosis.sentence, diagnosis.target)),
        tag(
            "div",
            _list_section("Evidence", _evidence(diagnosis.evidence)),
            _list_section(diagnosis.next, map(format_step, diagnosis.steps)),
            class_="halves",
        ),
        tag("p", f"Unknown, because these objects could not be read: {', '.join(diagnosis.unread)}")
        if diagnosis.unread
        else None,
        class_=f"why {diagnosis.verdict.value}",
    )


def _evidence(lines: Iterable[str]) -> Iterator[Safe]:
    """Yield lines of evidence. Quoted log lines form a block below the line that introduces them."""
    for is_quoted, group in groupby(lines, lambda line: line.startswith(INDENT)):
        if is_quoted:
            yield tag("pre", "\n".join(line.removeprefix(INDENT) for line in group), tabindex=0)
        else:
            yield from (join(sentence(line)) for line in group)


def cause_fragment(diagnosis: Diagnosis) -> Fragment:
    """Return the fragment of a diagnosis, which is empty for a healthy set. Screen readers announce its changes."""
    section = None if diagnosis.verdict in AS_DESIRED else cause_html(diagnosis)
    return Fragment("cause-text", tag("div", section, id="cause-text"), announcement=announcement(diagnosis))


def announcement(diagnosis: Diagnosis) -> str:
    """Return the announcement for screen readers if a cause changes, or an empty string while a set progresses."""
    return "" if diagnosis.verdict in CALM else headline(diagnosis)


def outdated_notes(snapshot: Snapshot) -> list[Fragment]:
    """Return a note that the snapshot may be outdated, if this is the case."""
    if not snapshot.connection_error:
        return []
    answered = snapshot.last_response
    since = tag("time", f"{answered:%H:%M:%S} UTC", datetime=answered.isoformat()) if answered else None
    note = join("; last response at ", since) if since else None
    return [
        Fragment(
            "trouble-text",
            tag("p", "⚠ ", snapshot.connection_error, note, id="trouble-text"),
            announcement=snapshot.connection_error,
        )
    ]


def missing_set_rendering(snapshot: Snapshot, address: Address, *regions: str) -> Rendering:
    """Return the page fragments for a set that does not exist."""
    kind = "DisaggregatedSet" if address.is_disaggregatedset else "LeaderWorkerSet"
    words = f"{kind} {address.key.name} does not exist in namespace {address.key.namespace}"
    keys = [*(view.key for view in snapshot.views), *(set_view.key for set_view in snapshot.sets)]
    others = sorted(key.name for key in keys if key.namespace == address.key.namespace)
    near = get_close_matches(address.key.name, others, n=1)
    lws = f"{snapshot.commands.lws} -n {address.key.namespace}"
    steps = [f"{lws} get", f"{lws} history {address.key.name}"]
    records = page_link(PageKind.HISTORY, address.key, "Recorded failures, if any")
    head = tag(
        "div",
        tag("h1", words),
        tag("p", f"Did you mean {near[0]}? ") if near else None,
        _list_section("Objects and recorded failures", map(format_step, steps)),
        tag("p", records) if not address.is_disaggregatedset else None,
        id="title",
        class_="empty",
    )
    rendering = {"trouble": outdated_notes(snapshot), "head": [Fragment("title", head)]}
    return rendering | {region: [] for region in regions}


def page_link(kind: PageKind, key: ObjectKey, *content: str | Safe, **attributes: str | None) -> Safe:
    """Return a link to a page. Its address is relative to the base path of the server."""
    return tag("a", *content, href=Address(kind=kind, key=key).path() or ".", **attributes)


def table(key: str, header: Iterable[str], body: Safe, caption: str) -> Safe:
    """Return a table whose body is a region."""
    head = tag("thead", tag("tr", _names(header)))
    return scroll_box(tag("table", tag("caption", caption), head, body, id=key, class_="plain"), caption)


def scroll_box(html: Safe, label: str) -> Safe:
    """Wrap wide content in a scrollable box. The page itself then does not scroll."""
    return tag("div", html, class_="scroll", role="region", aria_label=label, tabindex=0)


def header_row(words: Iterable[str], key: str = "column-names") -> Fragment:
    """Return the header row of a table whose columns vary."""
    return Fragment(key, tag("tr", _names(words), id=key))


def tabs(key: ObjectKey, current: PageKind | None, home: PageKind = PageKind.SET) -> Safe:
    """Return the tabs for the pages of a set."""
    links = [
        tag(
            "a",
            word,
            href=Address(kind=kind, key=key, origin=home).path(),
            aria_current="page" if kind is current else None,
        )
        for kind, word in (
            (home, "Roles" if home is PageKind.WHOLE else "Ranks"),
            (PageKind.ROLLOUT, "Rollout"),
            (PageKind.LOGS, "Logs"),
            (PageKind.HISTORY, "History"),
        )
    ]
    return tag("nav", links, class_="tabs", aria_label=f"Pages of {key.name}")


def format_step(line: str) -> Safe | str:
    """Return a next step as HTML. Commands are formatted as code and have a copy button."""
    if not line.startswith(("lws ", "kubectl ")):
        return sentence(line)
    button = tag("button", "Copy", type="button", class_="copy", data_copy=line, aria_label=f"Copy: {line}")
    return join(tag("code", line), " ", button)


def code_link(diagnosis: Diagnosis) -> Safe | None:
    """Return the cause code as a link to its page."""
    return (
        tag("a", tag("code", diagnosis.code), href=f"{PageKind.CAUSE.value}/{diagnosis.code}")
        if diagnosis.code
        else None
    )


def plain_row(key: str, *cells: str | int | Safe, find: str = "") -> Fragment:
    """Return a row of a plain table. Its first cell is a header."""
    first, *rest = cells
    html = tag(
        "tr",
        tag("th", first, scope="row"),
        [tag("td", content) for content in rest],
        id=key,
        data_find=find or None,
    )
    return Fragment(key, html)


def _names(words: Iterable[str]) -> list[Safe]:
    return [tag("th", word, scope="col") for word in words]


def _list_section(title: str, lines: Iterable[str | Safe]) -> Safe | None:
    items = [tag("li", line) for line in lines]
    return tag("div", tag("h3", title), tag("ul", items)) if items else None
