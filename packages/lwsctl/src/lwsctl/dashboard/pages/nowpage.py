"""Shows the first page, with problems by cause, sets in progress, and all other sets. Pure.

The order of the sets (`setorder.py`) determines the part of each row, so that rows move at most every ten seconds.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from kuberuntime.client.requests import Selection as Query
from kuberuntime.objects.resources import NODES, PODS
from lwsctl.dashboard.address import Address, PageForm, PageKind, StateFilter
from lwsctl.dashboard.fragments import Fragment, Rendering, region
from lwsctl.dashboard.markup import Safe, join, tag
from lwsctl.dashboard.pages import cells, totals
from lwsctl.dashboard.pages.page import Page, PageFacts
from lwsctl.dashboard.setorder import Tier
from lwsctl.dashboard.snapshot import Snapshot, set_location
from lwsctl.diagnosis.document import headline
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.model.disaggregatedset import SetView, Shown
from lwsctl.model.health import AS_DESIRED, URGENCY, WORDS, ready_or_complete
from lwsctl.model.leaderworkerset import View
from lwsctl.views.wording import format_count

READ_EVERY: Final = 30.0
"""The interval in seconds for reading nodes and pods, which affect only one number on the page."""

STEPS: Final = 2
"""The number of next steps that are shown for a cause. The page of a set shows all next steps."""

FEW: Final = 10
"""The maximum number of healthy sets that have complete rows."""

OPEN: Final = 4
"""The maximum number of sets with the same cause that are listed initially."""

HEADER: Final = ("Set", "Namespace", "Kind", "Verdict", "Ready", "Desired", "Updated", "Cause")
PARTS: Final = {
    Tier.PROBLEMS: "Problems",
    Tier.PROGRESSING: "In progress",
    Tier.HEALTHY: "Healthy",
    Tier.COMPLETE: "Complete",
}
"""The parts of the page, whose names are also the region names."""


def frame(address: Address, rendering: Rendering) -> Safe:
    """Return the page with its regions."""
    tiles = tag(
        "div",
        region("nav", "filters", rendering, class_="tiles", aria_label="Sets by state"),
        region("div", "totals", rendering),
        class_="overview",
    )
    head = join(tag("h1", "Now", class_="heard"), tiles, region("div", "empty", rendering))
    if address.format is PageForm.TABLE:
        return join(head, cells.table("plain", HEADER, region("tbody", "sets", rendering), "All sets"))
    return join(head, [_tier_section(tier, address, rendering) for tier in Tier if _is_tier_shown(address, tier)])


def _tier_section(tier: Tier, address: Address, rendering: Rendering) -> Safe:
    number = len(rendering.get(tier.name.lower(), ()))
    is_brief = tier >= Tier.HEALTHY and address.state is StateFilter.ALL and number > FEW
    kind = "causes" if tier is Tier.PROBLEMS else "lines brief" if is_brief else "lines"
    items = region("ul", tier.name.lower(), rendering, class_=kind)
    return tag("section", tag("h2", PARTS[tier]), items, class_="part")


def reads(_: Address) -> Sequence[Query]:
    """Return the lists of nodes and of all pods, to compute the free accelerators."""
    return [Query(NODES), Query(PODS)]


def render(snapshot: Snapshot, address: Address, facts: PageFacts) -> Rendering:
    """Return the fragments."""
    items = snapshot.ordered
    tiers = {tier: [item for item in items if _tier_of_set(snapshot, item) is tier] for tier in Tier}
    rendering: dict[str, list[Fragment]] = {
        "trouble": cells.outdated_notes(snapshot),
        "filters": list(_filter_tiles(address, tiers)),
        "totals": [_totals_fragment(snapshot, facts)] if items else [],
        "empty": [] if items else [_empty_fragment(snapshot)],
    }
    if address.format is PageForm.TABLE:
        return rendering | {"sets": [row for item in items for row in _table_rows(item)]}
    names_namespace = not snapshot.namespace and len({view.namespace for view in snapshot.views}) > 1
    parts = {
        tier.name.lower(): [_set_row(snapshot, item, names_namespace=names_namespace) for item in own]
        for tier, own in tiers.items()
        if _is_tier_shown(address, tier) and tier is not Tier.PROBLEMS
    }
    if _is_tier_shown(address, Tier.PROBLEMS):
        problems = _cause_fragments(snapshot, tiers[Tier.PROBLEMS], names_namespace=names_namespace)
        parts[Tier.PROBLEMS.name.lower()] = list(problems)
    return rendering | parts


def text(snapshot: Snapshot, _address: Address, _: PageFacts) -> Iterator[str]:
    """Yield the lines of the page in text format."""
    items = snapshot.ordered
    yield _summary(snapshot, items)
    for item in items:
        yield f"{item.namespace}/{headline(item.diagnosis)}"
        if isinstance(item, SetView):
            yield from (f"  {headline(part.diagnosis)}" for part in item.parts)


def _tier_of_set(snapshot: Snapshot, item: Shown) -> Tier:
    return snapshot.order.tier(set_location(item), item.diagnosis)


def _is_tier_shown(address: Address, tier: Tier) -> bool:
    return address.state in (StateFilter.ALL, tier.name.lower())


def _filter_tiles(address: Address, tiers: dict[Tier, list[Shown]]) -> Iterator[Fragment]:
    """Yield a tile for all sets and for each existing state, with the number of sets."""
    counts = {StateFilter.ALL: sum(map(len, tiers.values()))}
    counts |= {StateFilter(tier.name.lower()): len(own) for tier, own in tiers.items() if own}
    counts.setdefault(address.state, 0)
    for state, number in counts.items():
        word = PARTS[Tier[state.name]] if state else "Sets"
        word = word[:-1] if number == 1 and word in ("Sets", "Problems") else word
        amount = cells.update_part(f"filter/{state}/number", "strong", f"{number:,}")
        link = tag(
            "a",
            amount.html,
            f" {word}",
            href=f".?state={state}" if state else ".",
            id=f"filter/{state}",
            class_=state or None,
            aria_current="true" if state is address.state else None,
        )
        yield Fragment(f"filter/{state}", link, parts=(amount,))


def _totals_fragment(snapshot: Snapshot, facts: PageFacts) -> Fragment:
    sums = totals.all_totals(snapshot.views, facts)
    parts = {name: cells.update_part(f"totals/{name}", "dd", words) for name, words in sums.items()}
    entries = [tag("div", tag("dt", name), part.html) for name, part in parts.items()]
    return Fragment("totals-list", tag("dl", entries, id="totals-list", class_="facts"), parts=tuple(parts.values()))


def _summary(snapshot: Snapshot, items: Sequence[Shown]) -> str:
    where = f"namespace {snapshot.namespace}" if snapshot.namespace else "all namespaces"
    if not items:
        return f"{where}: no LeaderWorkerSets"
    set_views = [item for item in items if isinstance(item, SetView)]
    sets = [item for item in items if isinstance(item, View)] + [
        part for set_view in set_views for part in set_view.parts
    ]
    kinds = (_verdict_counts("LeaderWorkerSet", sets), _verdict_counts("DisaggregatedSet", set_views))
    return f"{where}: {'; '.join(filter(None, kinds))}"


def _verdict_counts(kind: str, items: Sequence[Shown]) -> str:
    """Return the number of sets of a kind by verdict, or an empty string if there are no sets."""
    counts = Counter(WORDS[item.diagnosis.verdict] for item in items)
    order = dict.fromkeys(WORDS[verdict] for verdict in reversed(URGENCY))
    words = [f"{counts[word]} {word}" for word in order if counts[word]]
    return f"{format_count(len(items), kind)}: {', '.join(words)}" if items else ""


def _empty_fragment(snapshot: Snapshot) -> Fragment:
    """Return the next steps if there are no sets."""
    where = f"namespace {snapshot.namespace}" if snapshot.namespace else "any namespace"
    step = cells.format_step(f"{snapshot.commands.lws} apply -f FILE.yaml")
    html = tag(
        "div",
        tag("h2", f"No LeaderWorkerSets in {where}"),
        tag("p", "Create one: ", step),
        id="nothing",
        class_="empty",
    )
    return Fragment("nothing", html)


def _cause_fragments(snapshot: Snapshot, items: Sequence[Shown], *, names_namespace: bool) -> Iterator[Fragment]:
    """Yield the problems by cause, in the order of their first set."""
    first = {item.diagnosis.code: at for at, item in reversed(list(enumerate(items)))}
    ranked = sorted(enumerate(items), key=lambda pair: (first[pair[1].diagnosis.code], pair[0]))
    for code, own in groupby(ranked, lambda pair: pair[1].diagnosis.code):
        yield _cause_fragment(snapshot, code, [item for _, item in own], names_namespace=names_namespace)


def _cause_fragment(snapshot: Snapshot, code: str, items: Sequence[Shown], *, names_namespace: bool) -> Fragment:
    key, diagnosis = f"cause/{code}", items[0].diagnosis
    shapes = {_without_name(item.diagnosis) for item in items}
    common = cells.sentence(shapes.pop()) if len(items) > 1 and len(shapes) == 1 else ""
    lines = [
        _set_row(snapshot, item, _subject_name(item.diagnosis) if common else None, names_namespace=names_namespace)
        for item in items
    ]
    name = cells.sentence(diagnosis.title or diagnosis.sentence, diagnosis.target)
    sign = tag(
        "span", cells.VERDICTS[diagnosis.verdict], class_=f"verdict {diagnosis.verdict.value}", aria_hidden="true"
    )
    amount = cells.update_part(f"{key}/number", "small", format_count(len(items), "set"))
    steps = dict.fromkeys(step for item in items[:1] for step in item.diagnosis.steps[:STEPS])
    hints = [tag("p", cells.format_step(step), class_="next") for step in steps]
    explained = (
        tag("a", code, href=f"{PageKind.CAUSE.value}/{code}", aria_label=f"{code}: meaning and remedy")
        if code
        else None
    )
    html = tag(
        "li",
        tag(
            "details",
            tag("summary", sign, " ", tag("strong", name), " ", amount.html, " ", tag("span", common, class_="common")),
            tag("ul", [line.html for line in lines], class_="lines"),
            tag("div", hints, explained, class_="hints"),
            open=len(items) <= OPEN,
        ),
        id=key,
        class_="cause" if len(items) > 1 else "cause single",
    )
    says = cells.announcement(diagnosis) if len(items) == 1 else f"{format_count(len(items), 'set')}: {code}: {name}"
    return Fragment(key, html, announcement=says, parts=(amount, *lines))


def _without_name(diagnosis: Diagnosis) -> str:
    """Return the sentence of a diagnosis without pod names and numbers, to compare diagnoses."""
    return re.sub(rf"{re.escape(diagnosis.target)}[-0-9a-z/]*( \(and \d+ more ranks?\))?", "…", diagnosis.sentence)


def _subject_name(diagnosis: Diagnosis) -> str:
    """Return the object of a diagnosis, or an empty string if the object is the set."""
    return "" if diagnosis.subject is None or diagnosis.subject.name == diagnosis.target else str(diagnosis.subject)


def _set_row(snapshot: Snapshot, item: Shown, description: str | None = None, *, names_namespace: bool) -> Fragment:
    """Return the row of a set with its state, name, age of the state, groups, accelerators, image, and cause."""
    view, diagnosis, kind = item, item.diagnosis, PageKind.SET if isinstance(item, View) else PageKind.WHOLE
    key = f"{'s' if kind is PageKind.SET else 'w'}/{view.namespace}/{view.name}"
    views = item.leaderworkersets
    state = cells.update_part(
        f"{key}/state", "span", cells.verdict_html(diagnosis), " ", cells.state_time(snapshot, item), class_="state"
    )
    ready = ready_or_complete(diagnosis.verdict, view.ready, view.desired)
    numbers = f" {ready:,}/{view.desired:,}"
    groups = cells.update_part(
        f"{key}/groups", "span", cells.meter(views), numbers, class_="groups", title=cells.groups_in_words(item)
    )
    gpus = totals.accelerators(views).requested
    images = sorted(set(filter(None, map(totals.worker_image, views))))
    why = cells.update_part(
        f"{key}/why", "span", _cause_or_roles(item) if description is None else description, class_="why"
    )
    name = cells.page_link(kind, view.key, view.name)
    small = tag("small", view.namespace) if names_namespace else None
    html = tag(
        "li",
        state.html,
        tag("span", name, " ", small, class_="name", title=f"{view.namespace}/{view.name}"),
        groups.html,
        tag("span", f"{gpus:,} GPUs" if gpus else "", class_="gpus"),
        tag("span", ", ".join(images), class_="image", title=", ".join(images)),
        why.html,
        id=key,
        class_="line",
        data_find=f"{view.namespace}/{view.name} {diagnosis.code}",
    )
    return Fragment(
        key,
        html,
        announcement="" if _tier_of_set(snapshot, item) is Tier.PROBLEMS else cells.announcement(diagnosis),
        parts=(state, groups, why),
    )


def _cause_or_roles(item: Shown) -> str:
    """Return the cause of a set, or the roles of a DisaggregatedSet."""
    if item.diagnosis.verdict not in AS_DESIRED:
        return cells.sentence(item.diagnosis.sentence, item.diagnosis.target)
    return "" if isinstance(item, View) else " · ".join(map(str, item.roles))


def _table_rows(item: Shown) -> Iterator[Fragment]:
    if isinstance(item, View):
        yield _table_row(item, PageKind.SET, item.up_to_date)
        return
    yield _table_row(item, PageKind.WHOLE, item.updated)
    for part in item.parts:
        yield _table_row(part, PageKind.SET, part.up_to_date)


def _table_row(item: Shown, kind: PageKind, updated: int) -> Fragment:
    view = item
    return cells.plain_row(
        f"r/{kind.value}/{view.namespace}/{view.name}",
        cells.page_link(kind, item.key, view.name),
        view.namespace,
        "LeaderWorkerSet" if kind is PageKind.SET else "DisaggregatedSet",
        cells.verdict_html(item.diagnosis),
        view.ready,
        view.desired,
        updated,
        f"{item.diagnosis.code} {item.diagnosis.sentence}".strip(),
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
