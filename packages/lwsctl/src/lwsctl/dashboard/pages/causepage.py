"""Shows a cause of the catalogue, with its meaning, its remedy, and the sets that currently have it. Pure."""

from collections.abc import Iterator
from typing import Final

from lwsctl.dashboard.address import Address, PageKind
from lwsctl.dashboard.fragments import Fragment, Rendering, region
from lwsctl.dashboard.markup import Safe, join, tag
from lwsctl.dashboard.pages import cells
from lwsctl.dashboard.pages.page import Page, PageFacts
from lwsctl.dashboard.snapshot import Snapshot
from lwsctl.diagnosis.catalogue import BY_CODE
from lwsctl.diagnosis.finding import Cause
from lwsctl.model.diagnosis import PERSONS
from lwsctl.model.leaderworkerset import View
from lwsctl.views.wording import format_count


def frame(_: Address, rendering: Rendering) -> Safe:
    """Return the page with its regions."""
    table = cells.table(
        "plain", ("Set", "Namespace", "What"), region("tbody", "rows", rendering), "Sets with this cause"
    )
    return join(region("header", "head", rendering), table)


def render(snapshot: Snapshot, address: Address, _: PageFacts) -> Rendering:
    """Return the fragments, or a message if the code is unknown."""
    cause = BY_CODE.get(address.episode)
    return {
        "trouble": cells.outdated_notes(snapshot),
        "head": [Fragment("title", tag("div", _explanation(address.episode, cause), id="title"))],
        "rows": [_row(item) for item in _affected_sets(snapshot, address.episode)],
    }


def text(snapshot: Snapshot, address: Address, _: PageFacts) -> Iterator[str]:
    """Yield the lines of the page in text format."""
    cause = BY_CODE.get(address.episode)
    if cause is None:
        yield f"cause {address.episode} does not exist"
        return
    yield f"{cause.code} {cause.title}"
    yield cause.meaning
    yield f"{cause.remedy} Note: {PERSONS[cause.person]}." if cause.person else cause.remedy
    yield f"{format_count(len(_affected_sets(snapshot, cause.code)), 'set')} with this cause"


def _explanation(code: str, cause: Cause | None) -> list[Safe | None]:
    if cause is None:
        return [tag("h1", f"cause {code} does not exist")]
    return [
        tag("h1", cells.sentence(cause.title), " ", tag("small", cause.code)),
        tag("h3", "Meaning"),
        tag("p", cells.sentence(cause.meaning)),
        tag("h3", "Next steps"),
        tag("p", cells.sentence(cause.remedy)),
        tag("p", f"Note: {PERSONS[cause.person]}.") if cause.person else None,
    ]


def _affected_sets(snapshot: Snapshot, code: str) -> list[View]:
    items = map(snapshot.with_diagnosis, snapshot.views)
    return [item for item in items if item.diagnosis.code == code]


def _row(view: View) -> Fragment:
    title = cells.page_link(PageKind.SET, view.key, view.name)
    return cells.plain_row(
        f"r/{view.namespace}/{view.name}",
        title,
        view.namespace,
        cells.sentence(view.diagnosis.sentence, view.name),
        find=view.name,
    )


PAGE: Final = Page(title=lambda address: address.episode or "Cause", frame=frame, render=render, text=text)
