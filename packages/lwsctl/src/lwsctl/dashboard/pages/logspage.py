"""Builds the frame of the logs page. Scripts select ranks and show their lines from a separate stream. Pure."""

from collections.abc import Iterator
from typing import Final

from lwsctl.dashboard.address import Address, PageKind
from lwsctl.dashboard.fragments import Rendering
from lwsctl.dashboard.markup import Safe, join, tag
from lwsctl.dashboard.pages import cells, setheader
from lwsctl.dashboard.pages.page import Page, PageFacts
from lwsctl.dashboard.snapshot import Snapshot
from lwsctl.model.disaggregatedset import rank_path
from lwsctl.views import changes

EXAMPLE: Final = "17/3, 18/*, */0, failed"
EXAMPLE_OF_ROLES: Final = "ROLE/17/3, ROLE/*/0, failed"


def frame(address: Address, rendering: Rendering) -> Safe:
    """Return the page with its regions. A script reads the log lines and shows them as text."""
    kind = PageKind.WHOLE if address.is_disaggregatedset else PageKind.SET
    place = f"{kind.value}/{address.key.namespace}/{address.key.name}"
    example = EXAMPLE_OF_ROLES if address.is_disaggregatedset else EXAMPLE
    field = tag("input", id="choice", type="text", autocomplete="off", placeholder=example, aria_label="Add ranks")
    ranks = tag(
        "div",
        tag("label", "Ranks ", field),
        tag("span", id="chips", class_="chips", role="group", aria_label="Selected ranks"),
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
    return join(
        setheader.frame(address, rendering),
        tag("div", ranks, tools, lines, id="logs", class_="logs", data_source=f"logs/{place}"),
    )


def render(snapshot: Snapshot, address: Address, _: PageFacts) -> Rendering:
    """Return the fragments."""
    item = snapshot.find_set(address.key, is_disaggregatedset=address.is_disaggregatedset)
    if item is None:
        return cells.missing_set_rendering(snapshot, address)
    owners = snapshot.members(address.key, is_disaggregatedset=address.is_disaggregatedset)
    failed = next((rank_path(rank, names) for own, names in owners if (rank := cells.failed_rank(own))), None)
    roles = " ".join(dict.fromkeys(names[-1] for _, names in owners if names))
    head = setheader.header_fragment(snapshot, item, data_failed=failed, data_roles=roles or None)
    return {"trouble": cells.outdated_notes(snapshot), "head": [head]}


def text(snapshot: Snapshot, address: Address, _: PageFacts) -> Iterator[str]:
    """Yield a line for each rank. The page itself saves the log lines."""
    for view, names in snapshot.members(address.key, is_disaggregatedset=address.is_disaggregatedset):
        yield from (f"{rank_path(rank.place, names)} {rank.pod}: {changes.describe(rank)}" for rank in view.ranks)


PAGE: Final = Page(title=lambda address: f"Logs of {address.key.name}", frame=frame, render=render, text=text)
