"""Logs: the frame of the page; scripts choose ranks and show their lines, which come by their own stream. Pure."""

from collections.abc import Iterator
from typing import Final

from lwsctl.dashboard.address import Address
from lwsctl.dashboard.markup import Safe, joined, tag
from lwsctl.dashboard.pages import cells, sethead
from lwsctl.dashboard.pages.page import Page, PageFacts
from lwsctl.dashboard.picture import Picture
from lwsctl.dashboard.pieces import Rendering
from lwsctl.views import changes

EXAMPLE: Final = "17/3, 18/*, */0, failed"


def frame(address: Address, rendering: Rendering) -> Safe:
    """Return the page with its regions; a script reads the lines, and shows them as text."""
    place = f"{address.key.namespace}/{address.key.name}"
    field = tag("input", id="choice", type="text", autocomplete="off", placeholder=EXAMPLE, aria_label="Add ranks")
    ranks = tag(
        "div",
        tag("label", "Ranks ", field),
        tag("span", id="chips", class_="chips", role="group", aria_label="Chosen ranks"),
        class_="tools",
    )
    tools = tag(
        "div",
        tag("button", "Earlier lines", id="earlier", type="button"),
        tag("button", "First error", id="first-error", type="button", data_source=f"first-error/{place}"),
        tag("button", "Side by side", id="layout", type="button", aria_pressed="false"),
        tag("button", "Follow", id="follow", type="button", aria_pressed="true"),
        tag("button", "Save", id="save", type="button"),
        tag(
            "input",
            id="log-search",
            type="search",
            autocomplete="off",
            placeholder="Search lines",
            aria_label="Search lines",
        ),
        tag("output", id="log-state", class_="hint"),
        class_="tools",
    )
    lines = tag(
        "div", id="lines", class_="lines-of-logs", role="log", aria_live="off", aria_label="Log lines", tabindex=0
    )
    return joined(
        sethead.frame(address, rendering),
        tag("div", ranks, tools, lines, id="logs", class_="logs", data_source=f"logs/{place}"),
    )


def render(picture: Picture, address: Address, _: PageFacts) -> Rendering:
    """Return the pieces."""
    view = picture.find(address.key)
    if view is None:
        return cells.absent(picture, address)
    head = sethead.piece(picture, picture.told(view), data_failed=cells.failed_rank(view))
    return {"trouble": cells.trouble(picture), "head": [head]}


def text(picture: Picture, address: Address, _: PageFacts) -> Iterator[str]:
    """Yield a line for each rank: the lines of logs are saved by the page."""
    view = picture.find(address.key)
    for group in view.groups if view else ():
        yield from (f"{rank.place} {rank.pod}: {changes.describe(rank)}" for rank in group.ranks)


PAGE: Final = Page(title=lambda address: f"Logs of {address.key.name}", frame=frame, render=render, text=text)
