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
from leaderworkerset.diagnosis.finding import Diagnosis
from leaderworkerset.views.health.verdict import AS_DESIRED, URGENCY, WORDS
from leaderworkerset.views.wording import counted

READ_EVERY: Final = 30.0
"""Seconds between two readings of nodes and pods: only one number of the page depends on them."""

EVIDENCE: Final = 2
STEPS: Final = 2
"""The number of lines of evidence, and of next steps, that are shown of a problem; its page shows all."""

HEADER = ("set", "namespace", "kind", "verdict", "ready", "desired", "updated", "cause")


def frame(address: Address, rendering: Rendering) -> Safe:
    """Return the page with its regions."""
    head = joined(tag("h1", "Now"), region("div", "totals", rendering), region("p", "summary", rendering))
    if address.form is PageForm.TABLE:
        return joined(head, cells.table("plain", HEADER, region("tbody", "sets", rendering), "All sets"))
    return joined(head, region("ul", "sets", rendering, class_="sets"))


def reads(_: Address) -> Sequence[Query]:
    """Return the lists: nodes and all pods, for the accelerators that are free."""
    return [Query(NODES), Query(PODS)]


def render(picture: Picture, address: Address, facts: PageFacts) -> Rendering:
    """Return the pieces."""
    items = picture.ordered()
    make = _row if address.form is PageForm.TABLE else _item
    return {
        "trouble": cells.trouble(picture),
        "totals": [totals.piece(*_by_kind(items), facts)],
        "summary": [
            Piece("summary-text", tag("span", _summary(picture, items), _empty(picture, items), id="summary-text"))
        ],
        "sets": [piece for item in items for piece in make(item)],
    }


def text(picture: Picture, _address: Address, _: PageFacts) -> Iterator[str]:
    """Yield the lines of the page as text."""
    items = picture.ordered()
    yield _summary(picture, items)
    for item in items:
        yield f"{item.view.namespace}/{headline(item.told)}"
        if isinstance(item, ToldWhole):
            yield from (f"  {headline(part.told)}" for part in item.parts)


def _summary(picture: Picture, items: list[ToldSet | ToldWhole]) -> str:
    where = f"namespace {picture.namespace}" if picture.namespace else "all namespaces"
    if not items:
        return f"{where}: no LeaderWorkerSets"
    sets, wholes = _by_kind(items)
    kinds = (_verdicts("LeaderWorkerSet", sets), _verdicts("DisaggregatedSet", wholes))
    return f"{where}: {'; '.join(filter(None, kinds))}"


def _by_kind(items: Sequence[ToldSet | ToldWhole]) -> tuple[list[ToldSet], list[ToldWhole]]:
    """Return all LeaderWorkerSets, also those of DisaggregatedSets, and all DisaggregatedSets."""
    wholes = [item for item in items if isinstance(item, ToldWhole)]
    alone = [item for item in items if isinstance(item, ToldSet)]
    return [*alone, *(part for whole in wholes for part in whole.parts)], wholes


def _verdicts(kind: str, sets: Sequence[ToldSet] | Sequence[ToldWhole]) -> str:
    """Return the number of sets of a kind with each verdict; empty without any."""
    counts = Counter(WORDS[item.told.verdict] for item in sets)
    order = dict.fromkeys(WORDS[verdict] for verdict in reversed(URGENCY))
    words = [f"{counts[word]} {word}" for word in order if counts[word]]
    return f"{counted(len(sets), kind)}: {', '.join(words)}" if sets else ""


def _empty(picture: Picture, items: list[ToldSet | ToldWhole]) -> Safe | None:
    """Return the command to type where there are no sets."""
    return None if items else joined(". Create one: ", cells.command(f"{picture.commands.lws} apply -f FILE.yaml"))


def _item(item: ToldSet | ToldWhole) -> Iterator[Piece]:
    if isinstance(item, ToldSet):
        yield _set_item(item, "li")
        return
    whole, key = item.view, f"w/{item.view.namespace}/{item.view.name}"
    roles = ", ".join(map(str, whole.roles))
    title = cells.link(PageKind.WHOLE, item.view.key, whole.name)
    verdict, problem = _verdict(key, item.told), _problem(key, item.told)
    state = cells.part(f"{key}/state", "p", f"{roles}; rollout {whole.rollout}")
    parts = [_set_item(part, "div") for part in item.parts]
    html = tag(
        "li",
        tag("h2", verdict.html, " ", title, " ", tag("small", f"{whole.namespace} · DisaggregatedSet")),
        state.html,
        problem.html,
        tag("div", [part.html for part in parts], class_="parts"),
        id=key,
        class_="set",
        data_find=f"{whole.namespace}/{whole.name}",
    )
    yield Piece(key, html, says=cells.spoken(item.told), parts=(verdict, state, problem, *parts))


def _set_item(item: ToldSet, element: str) -> Piece:
    view, key = item.view, f"s/{item.view.namespace}/{item.view.name}"
    numbers = f"{view.ready} of {counted(view.desired, 'group')} ready"
    rollout = f", {view.up_to_date} updated" if view.is_updating else ""
    name = cells.link(PageKind.SET, view.key, view.name)
    bar = cells.bar(view.ready, view.desired, f"{view.name}: {numbers}")
    state = cells.part(f"{key}/state", "p", numbers, rollout, " ", bar)
    verdict, strip, problem = _verdict(key, item.told), cells.strip(f"{key}/groups", view), _problem(key, item.told)
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
    return Piece(key, html, says=cells.spoken(item.told), parts=(verdict, state, strip, problem))


def _verdict(key: str, diagnosis: Diagnosis) -> Piece:
    return Piece(f"{key}/verdict", cells.verdict(diagnosis, f"{key}/verdict"))


def _problem(key: str, diagnosis: Diagnosis) -> Piece:
    """Return the cause of a set that is not healthy: a sentence, the first evidence, and the next steps."""
    if diagnosis.verdict in AS_DESIRED:
        return cells.part(f"{key}/problem", "div")
    sentence = tag("p", cells.code(diagnosis), " " if diagnosis.code else None, diagnosis.sentence, class_="sentence")
    evidence = [tag("li", line) for line in diagnosis.evidence[:EVIDENCE]]
    steps = [tag("p", "→ ", cells.command(step), class_="next") for step in diagnosis.steps[:STEPS]]
    evidence_list = tag("ul", evidence, class_="evidence") if evidence else None
    return cells.part(f"{key}/problem", "div", sentence, evidence_list, steps)


def _row(item: ToldSet | ToldWhole) -> Iterator[Piece]:
    if isinstance(item, ToldSet):
        yield _table_row(item, PageKind.SET, item.view.up_to_date)
        return
    yield _table_row(item, PageKind.WHOLE, item.view.updated)
    for part in item.parts:
        yield _table_row(part, PageKind.SET, part.view.up_to_date)


def _table_row(item: ToldSet | ToldWhole, kind: PageKind, updated: int) -> Piece:
    view = item.view
    return cells.row(
        f"r/{kind.value}/{view.namespace}/{view.name}",
        cells.link(kind, item.view.key, view.name),
        view.namespace,
        "LeaderWorkerSet" if kind is PageKind.SET else "DisaggregatedSet",
        cells.verdict(item.told),
        view.ready,
        view.desired,
        updated,
        f"{item.told.code} {item.told.sentence}".strip(),
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
