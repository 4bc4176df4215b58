"""Logs: the frame of the page, and the ranks to choose from; lines come by their own stream. Pure."""

from collections.abc import Iterator
from typing import Final

from leaderworkerset.dashboard.address import Address, PageKind
from leaderworkerset.dashboard.markup import Safe, joined, tag
from leaderworkerset.dashboard.pages import cells
from leaderworkerset.dashboard.pages.page import Page, PageFacts
from leaderworkerset.dashboard.picture import Picture
from leaderworkerset.dashboard.pieces import Piece, Rendering, region
from leaderworkerset.views import changes

MOST_RANKS: Final = 2000
"""The maximum of ranks to choose from."""


def frame(address: Address, rendering: Rendering) -> Safe:
    """Return the page with its regions; a script reads the lines, and shows them as text."""
    place = f"{address.key.namespace}/{address.key.name}"
    tools = tag(
        "div",
        tag("button", "Side by side", id="layout", type="button", aria_pressed="false"),
        tag("button", "First error", id="first-error", type="button", data_source=f"first-error/{place}"),
        tag("button", "Follow", id="follow", type="button", aria_pressed="true"),
        tag("button", "Save", id="save", type="button"),
        tag("label", "Search ", tag("input", id="log-search", type="search", autocomplete="off")),
        tag("output", id="log-state"),
        class_="tools",
    )
    ranks = tag(
        "fieldset",
        tag("legend", "Ranks (none chosen: every leader)"),
        region("div", "ranks", rendering, class_="places"),
        class_="ranks",
    )
    lines = tag("div", id="lines", class_="lines", role="log", aria_live="off", aria_label="Log lines", tabindex=0)
    source = tag("div", tools, lines, id="logs", data_source=f"logs/{place}")
    return joined(region("header", "head", rendering), ranks, source)


def render(picture: Picture, address: Address, _: PageFacts) -> Rendering:
    """Return the pieces: the title, and a box for each rank that may be chosen."""
    view = picture.find(address.key)
    if view is None:
        return cells.absent(picture, address, "ranks")
    title = tag(
        "div",
        tag("h1", view.name, " ", tag("small", f"{view.namespace} · logs")),
        cells.tabs(view.key, PageKind.LOGS),
        id="title",
        data_failed=cells.failed_rank(view),
    )
    ranks = [rank for group in view.groups for rank in group.ranks if rank.object is not None][:MOST_RANKS]
    boxes = [
        Piece(
            f"b/{rank.place}",
            tag(
                "label",
                tag("input", type="checkbox", name="rank", value=rank.place, autocomplete="off"),
                f" {rank.place}",
                id=f"b/{rank.place}",
                title=rank.pod,
            ),
        )
        for rank in ranks
    ]
    return {"trouble": cells.trouble(picture), "head": [Piece("title", title)], "ranks": boxes}


def text(picture: Picture, address: Address, _: PageFacts) -> Iterator[str]:
    """Yield a line for each rank: the lines of logs are saved by the page."""
    view = picture.find(address.key)
    for group in view.groups if view else ():
        yield from (f"{rank.place} {rank.pod}: {changes.describe(rank)}" for rank in group.ranks)


PAGE: Final = Page(title=lambda address: f"Logs of {address.key.name}", frame=frame, render=render, text=text)
