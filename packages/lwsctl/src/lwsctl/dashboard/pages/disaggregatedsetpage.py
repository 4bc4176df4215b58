"""Shows a DisaggregatedSet with its roles, its cause, and its LeaderWorkerSets. Pure."""

from collections.abc import Iterator
from typing import Final

from lwsctl.dashboard import availableactions
from lwsctl.dashboard.address import Address
from lwsctl.dashboard.fragments import Fragment, Rendering, region
from lwsctl.dashboard.markup import Safe, join, tag
from lwsctl.dashboard.pages import cells, setheader, totals
from lwsctl.dashboard.pages.page import Page, PageFacts
from lwsctl.dashboard.snapshot import Snapshot
from lwsctl.diagnosis.document import headline, lines
from lwsctl.model.health import AS_DESIRED
from lwsctl.model.leaderworkerset import View


def frame(address: Address, rendering: Rendering) -> Safe:
    """Return the page with its regions."""
    return join(
        setheader.frame(address, rendering),
        region("div", "cause", rendering),
        region("ul", "rows", rendering, class_="roles", aria_label=f"The LeaderWorkerSets of {address.key.name}"),
    )


def render(snapshot: Snapshot, address: Address, _: PageFacts) -> Rendering:
    """Return the fragments, or a message if the set does not exist."""
    set_view = snapshot.find_disaggregatedset(address.key)
    if set_view is None:
        return cells.missing_set_rendering(snapshot, address, "cause", "rows", "scale-role")
    has_slices = len({part.slice for part in set_view.parts}) > 1
    return {
        "trouble": cells.outdated_notes(snapshot),
        "head": [
            setheader.header_fragment(
                snapshot, set_view, data_actions=availableactions.disaggregatedset_actions(set_view)
            )
        ],
        "cause": [cells.cause_fragment(set_view.diagnosis)],
        "rows": [_row(snapshot, part, has_slices=has_slices) for part in set_view.parts],
        "scale-role": [_role(name, groups) for name, groups in availableactions.role_replicas(set_view).items()],
    }


def text(snapshot: Snapshot, address: Address, _: PageFacts) -> Iterator[str]:
    """Yield the lines of the page in text format."""
    set_view = snapshot.find_disaggregatedset(address.key)
    if set_view is None:
        yield f"{address.key.name} does not exist in namespace {address.key.namespace}"
        return
    yield from lines(set_view.diagnosis)
    yield ""
    yield from (headline(part.diagnosis) for part in set_view.parts)


def _role(name: str, groups: int) -> Fragment:
    """Return the list item of a role with its number of groups."""
    return cells.update_part(f"role/{name}", "option", name, value=name, data_groups=groups)


def _row(snapshot: Snapshot, part: View, *, has_slices: bool) -> Fragment:
    """Return a LeaderWorkerSet of the set, with its state, its properties, and the tabs for its pages."""
    key = f"p/{part.name}"
    state = cells.state_fragment(f"{key}/state", snapshot, part)
    calm = part.diagnosis.verdict in AS_DESIRED
    why = cells.update_part(
        f"{key}/why",
        "p",
        None if calm else cells.sentence(part.diagnosis.sentence, part.diagnosis.target),
        class_="why",
    )
    facts = {
        "Slice": part.slice if has_slices else "",
        "Revision": part.set_revision,
        "Image": totals.worker_image(part),
    }
    entries = [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts.items() if value]
    html = tag(
        "li",
        tag("h2", part.role, " ", tag("small", part.name)),
        state.html,
        tag("dl", entries, class_="facts"),
        why.html,
        cells.tabs(part.key, None),
        id=key,
        data_find=part.name,
    )
    return Fragment(key, html, parts=(state, why))


PAGE: Final = Page(title=lambda address: address.key.name, frame=frame, render=render, text=text)
