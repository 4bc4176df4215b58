"""A DisaggregatedSet: its roles, its cause, and its LeaderWorkerSets by slice, role and revision. Pure."""

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from leaderworkerset.dashboard import offers
from leaderworkerset.dashboard.address import Address, PageKind
from leaderworkerset.dashboard.markup import Safe, joined, tag
from leaderworkerset.dashboard.pages import cells
from leaderworkerset.dashboard.pages.page import Page, PageFacts
from leaderworkerset.dashboard.picture import Picture, ToldWhole
from leaderworkerset.dashboard.pieces import Piece, Rendering, region
from leaderworkerset.diagnosis.document import headline, lines
from leaderworkerset.views.disaggregation import PartView
from leaderworkerset.views.wording import counted

HEADER: Final = ("LeaderWorkerSet", "slice", "role", "revision", "verdict", "ready", "groups", "cause")


def frame(address: Address, rendering: Rendering) -> Safe:
    """Return the page with its regions."""
    table = cells.table(
        "plain", HEADER, region("tbody", "rows", rendering), f"The LeaderWorkerSets of {address.key.name}"
    )
    return joined(region("header", "head", rendering), region("div", "cause", rendering), table)


def render(picture: Picture, address: Address, _: PageFacts) -> Rendering:
    """Return the pieces; for a set that does not exist a sentence that says so."""
    whole = picture.find_whole(address.key)
    if whole is None:
        return cells.absent(picture, address, "cause", "rows", "scale-role")
    item = picture.told_whole(whole)
    return {
        "trouble": cells.trouble(picture),
        "head": [_head(item)],
        "cause": [cells.cause_piece("cause-text", item.told)],
        "rows": [_row(picture, part) for part in whole.parts],
        "scale-role": [_role(name, groups) for name, groups in offers.roles(whole).items()],
    }


def text(picture: Picture, address: Address, _: PageFacts) -> Iterator[str]:
    """Yield the lines of the page as text."""
    whole = picture.find_whole(address.key)
    if whole is None:
        yield f"{address.key.name} does not exist in namespace {address.key.namespace}"
        return
    item = picture.told_whole(whole)
    yield from lines(item.told)
    yield ""
    yield from (headline(part.told) for part in item.parts)


def _head(item: ToldWhole) -> Piece:
    whole = item.view
    roles = "; ".join(f"{role.name}: {role.ready} of {counted(role.desired, 'group')} ready" for role in whole.roles)
    html = tag(
        "div",
        tag("h1", whole.name, " ", tag("small", f"{whole.namespace} · DisaggregatedSet")),
        tag("p", roles, " ", cells.bar(whole.ready, whole.desired, roles)),
        tag("p", f"rollout: {whole.rollout}"),
        id="title",
        data_actions=offers.of_whole(whole),
    )
    return Piece("title", html)


def _role(name: str, groups: int) -> Piece:
    """Return the entry of a role in the list of roles, with its number of groups."""
    return cells.part(f"role/{name}", "option", name, value=name, data_groups=groups)


def _row(picture: Picture, part: PartView) -> Piece:
    view, diagnosis, key = part.view, picture.told(part.view).told, f"p/{part.view.name}"
    strip = cells.strip(f"{key}/groups", view)
    row = cells.row(
        key,
        cells.link(PageKind.SET, view.key, view.name),
        part.slice,
        part.role,
        part.revision,
        cells.verdict(diagnosis),
        f"{view.ready} of {view.desired}",
        strip.html,
        f"{diagnosis.code} {diagnosis.sentence}".strip(),
        find=view.name,
    )
    return replace(row, parts=(strip,))


PAGE: Final = Page(title=lambda address: address.key.name, frame=frame, render=render, text=text)
