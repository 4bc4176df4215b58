"""Now: all sets, those with problems first, each with its groups, its one cause and its progress. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from kuberuntime.client.requests import Selection as Query
from kuberuntime.objects.resources import NODES, PODS
from leaderworkerset.dashboard.address import Address, PageForm, PageKind
from leaderworkerset.dashboard.markup import Safe, joined, tag
from leaderworkerset.dashboard.pages import cells, totals
from leaderworkerset.dashboard.pages.page import Page, PageFacts
from leaderworkerset.dashboard.picture import Picture, ToldSet, ToldWhole
from leaderworkerset.dashboard.pieces import Piece, Rendering, region
from leaderworkerset.diagnosis.document import headline
from leaderworkerset.diagnosis.finding import Diagnosis, Verdict
from leaderworkerset.views.wording import counted

READ_EVERY: Final = 30.0
"""Seconds between two readings of nodes and pods: only one number of the page depends on them."""

EVIDENCE: Final = 2
STEPS: Final = 2
"""The number of lines of evidence, and of next steps, that are shown of a problem; its page shows all."""

HEADER = ("set", "namespace", "kind", "verdict", "ready", "desired", "updated", "cause")


def frame(address: Address, shown: Rendering) -> Safe:
    """Return the page with its regions."""
    head = joined(tag("h1", "Now"), region("div", "totals", shown), region("p", "summary", shown))
    if address.form is PageForm.TABLE:
        return joined(head, cells.table("plain", HEADER, region("tbody", "sets", shown), "All sets"))
    return joined(head, region("ul", "sets", shown, class_="sets"))


def reads(_: Address) -> Sequence[Query]:
    """Return the lists: nodes and all pods, for the accelerators that are free."""
    return [Query(NODES), Query(PODS)]


def render(picture: Picture, address: Address, facts: PageFacts) -> Rendering:
    """Return the pieces."""
    found = picture.ordered()
    make = _row if address.form is PageForm.TABLE else _item
    return {
        "trouble": cells.trouble(picture),
        "totals": [totals.piece(*_by_kind(found), facts)],
        "summary": [Piece("summary-text", tag("span", _summary(picture, found), _empty(found), id="summary-text"))],
        "sets": [piece for one in found for piece in make(one)],
    }


def text(picture: Picture, _address: Address, _: PageFacts) -> Iterator[str]:
    """Yield the lines of the page as text."""
    found = picture.ordered()
    yield _summary(picture, found)
    for one in found:
        yield f"{one.view.namespace}/{headline(one.told)}"
        if isinstance(one, ToldWhole):
            yield from (f"  {headline(part.told)}" for part in one.parts)


def _summary(picture: Picture, found: list[ToldSet | ToldWhole]) -> str:
    where = f"namespace {picture.namespace}" if picture.namespace else "all namespaces"
    if not found:
        return f"{where}: no LeaderWorkerSets"
    sets, wholes = _by_kind(found)
    kinds = (_verdicts("LeaderWorkerSet", sets), _verdicts("DisaggregatedSet", wholes))
    return f"{where}: {'; '.join(filter(None, kinds))}"


def _by_kind(items: Sequence[ToldSet | ToldWhole]) -> tuple[list[ToldSet], list[ToldWhole]]:
    """Return all LeaderWorkerSets, also those of DisaggregatedSets, and all DisaggregatedSets."""
    wholes = [item for item in items if isinstance(item, ToldWhole)]
    alone = [item for item in items if isinstance(item, ToldSet)]
    return [*alone, *(part for whole in wholes for part in whole.parts)], wholes


def _verdicts(kind: str, sets: Sequence[ToldSet] | Sequence[ToldWhole]) -> str:
    """Return the number of sets of a kind with each verdict; empty without any."""
    counts = Counter(item.told.verdict for item in sets)
    words = [f"{counts[verdict]} {cells.VERDICTS[verdict][1]}" for verdict in Verdict if counts[verdict]]
    return f"{counted(len(sets), kind)}: {', '.join(words)}" if sets else ""


def _empty(found: list[ToldSet | ToldWhole]) -> Safe | None:
    """Return the command to type where there are no sets."""
    return None if found else joined(". Create one: ", cells.command("lws apply -f FILE.yaml"))


def _item(one: ToldSet | ToldWhole) -> Iterator[Piece]:
    if isinstance(one, ToldSet):
        yield _set_item(one, "li")
        return
    whole, key = one.view, f"w/{one.view.namespace}/{one.view.name}"
    roles = ", ".join(map(str, whole.roles))
    title = cells.link(PageKind.WHOLE, one.view.key, whole.name)
    verdict, problem = _verdict(key, one.told), _problem(key, one.told)
    state = cells.part(f"{key}/state", "p", f"{roles}; rollout {whole.rollout}")
    items = [_set_item(item, "div") for item in one.parts]
    html = tag(
        "li",
        tag("h2", verdict.html, " ", title, " ", tag("small", f"{whole.namespace} · DisaggregatedSet")),
        state.html,
        problem.html,
        tag("div", [item.html for item in items], class_="parts"),
        id=key,
        class_="set",
        data_find=f"{whole.namespace}/{whole.name}",
    )
    yield Piece(key, html, says=cells.spoken(one.told), parts=(verdict, state, problem, *items))


def _set_item(one: ToldSet, element: str) -> Piece:
    view, key = one.view, f"s/{one.view.namespace}/{one.view.name}"
    numbers = f"{view.ready} of {counted(view.desired, 'group')} ready"
    rollout = f", {view.up_to_date} updated" if view.is_updating else ""
    name = cells.link(PageKind.SET, view.key, view.name)
    bar = cells.bar(view.ready, view.desired, f"{view.name}: {numbers}")
    state = cells.part(f"{key}/state", "p", numbers, rollout, " ", bar)
    verdict, strip, problem = _verdict(key, one.told), cells.strip(f"{key}/groups", view), _problem(key, one.told)
    html = tag(
        element,
        tag("h2", verdict.html, " ", name, " ", tag("small", view.namespace)),
        state.html,
        strip.html,
        problem.html,
        id=key,
        class_="set",
        data_find=f"{view.namespace}/{view.name}",
    )
    return Piece(key, html, says=cells.spoken(one.told), parts=(verdict, state, strip, problem))


def _verdict(key: str, told: Diagnosis) -> Piece:
    return Piece(f"{key}/verdict", cells.verdict(told, f"{key}/verdict"))


def _problem(key: str, told: Diagnosis) -> Piece:
    """Return the cause of a set that is not healthy: a sentence, the first evidence, and the next steps."""
    if told.verdict is Verdict.HEALTHY:
        return cells.part(f"{key}/problem", "div")
    sentence = tag("p", cells.code(told), " " if told.code else None, told.sentence, class_="sentence")
    evidence = [tag("li", line) for line in told.evidence[:EVIDENCE]]
    steps = [tag("p", "→ ", cells.command(step), class_="next") for step in told.steps[:STEPS]]
    listed = tag("ul", evidence, class_="evidence") if evidence else None
    return cells.part(f"{key}/problem", "div", sentence, listed, steps)


def _row(one: ToldSet | ToldWhole) -> Iterator[Piece]:
    if isinstance(one, ToldSet):
        yield _table_row(one, PageKind.SET, one.view.up_to_date)
        return
    yield _table_row(one, PageKind.WHOLE, one.view.updated)
    for part in one.parts:
        yield _table_row(part, PageKind.SET, part.view.up_to_date)


def _table_row(one: ToldSet | ToldWhole, kind: PageKind, updated: int) -> Piece:
    view = one.view
    return cells.row(
        f"r/{kind.value}/{view.namespace}/{view.name}",
        cells.link(kind, one.view.key, view.name),
        view.namespace,
        "LeaderWorkerSet" if kind is PageKind.SET else "DisaggregatedSet",
        cells.verdict(one.told),
        view.ready,
        view.desired,
        updated,
        f"{one.told.code} {one.told.sentence}".strip(),
        find=f"{view.namespace}/{view.name}",
    )


PAGE: Final = Page(
    title=lambda _: "Now",
    frame=frame,
    render=render,
    text=text,
    reads=reads,
    reads_every=READ_EVERY,
    shows_first=lambda _: True,
)
