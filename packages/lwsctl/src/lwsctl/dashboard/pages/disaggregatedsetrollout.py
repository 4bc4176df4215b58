"""Shows the rollout of a DisaggregatedSet, with its roles side by side, charts and revisions. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final

from lwsctl.dashboard.address import Address, PageKind
from lwsctl.dashboard.fragments import Fragment, Rendering, region
from lwsctl.dashboard.markup import Safe, join, tag
from lwsctl.dashboard.pages import cells, revisionchart, rolloutpage, setheader
from lwsctl.dashboard.pages.page import Page, PageFacts
from lwsctl.dashboard.snapshot import Snapshot
from lwsctl.model.disaggregatedset import RoleCount, SetView, rank_path
from lwsctl.model.groups import Group
from lwsctl.model.leaderworkerset import View
from lwsctl.views.wording import format_count


def frame(address: Address, rendering: Rendering) -> Safe:
    """Return the page with its regions."""
    roles = region("ul", "rows", rendering, class_="roles", aria_label=f"The roles of {address.key.name}")
    return join(setheader.frame(address, rendering), region("div", "cause", rendering), roles)


def render(snapshot: Snapshot, address: Address, _: PageFacts) -> Rendering:
    """Return the fragments, or a message if the set does not exist."""
    set_view = snapshot.find_disaggregatedset(address.key)
    if set_view is None:
        return cells.missing_set_rendering(snapshot, address, "cause", "rows")
    newest = _latest_revision(set_view)
    return {
        "trouble": cells.outdated_notes(snapshot),
        "head": [setheader.header_fragment(snapshot, set_view)],
        "cause": [cells.cause_fragment(set_view.diagnosis)],
        "rows": [_row(role, _role_parts(set_view, role), newest) for role in set_view.roles],
    }


def text(snapshot: Snapshot, address: Address, _: PageFacts) -> Iterator[str]:
    """Yield the lines of the page in text format."""
    set_view = snapshot.find_disaggregatedset(address.key)
    if set_view is None:
        yield f"{address.key.name} does not exist in namespace {address.key.namespace}"
        return
    yield set_view.rollout
    for role in set_view.roles:
        yield from (f"{role.name}: {_describe_part(part)}" for part in _role_parts(set_view, role))


def _role_parts(set_view: SetView, role: RoleCount) -> list[View]:
    return [part for part in set_view.parts if part.role == role.name]


def _latest_revision(set_view: SetView) -> str:
    """Return the revision of the most recently created LeaderWorkerSets."""
    return max(set_view.parts, key=lambda part: part.created).set_revision if set_view.parts else ""


def _describe_part(part: View) -> str:
    view = part
    return (
        f"revision {part.set_revision}, slice {part.slice}: {view.ready} of {format_count(view.desired, 'group')} ready"
    )


def _row(role: RoleCount, parts: Sequence[View], newest: str) -> Fragment:
    """Return the row of a role with its ready groups, its chart, and its LeaderWorkerSets."""
    key, steps = f"r/{role.name}", {}
    own: list[Group] = []
    for part in parts:
        is_updated = part.set_revision == newest
        for group in part.groups:
            steps[rank_path(str(group.name), [part.name])] = rolloutpage.group_step(group, is_updated=is_updated)
        own += part.groups if is_updated else []
    done = sum(group.is_done for group in own)
    words = f"{done} of {format_count(role.desired, 'group')} ready at the latest revision"
    bar = cells.update_part(f"{key}/bar", "p", cells.bar(done, role.desired, words), " ", words)
    course = revisionchart.update_times(own, max(role.desired, len(own)))
    drawing = rolloutpage.rollout_chart(f"{key}/picture", steps, course)
    links = [tag("li", cells.page_link(PageKind.ROLLOUT, part.key, _describe_part(part))) for part in parts]
    listed = cells.update_part(f"{key}/parts", "ul", links)
    html = tag("li", tag("h2", role.name), bar.html, drawing.html, listed.html, id=key, data_find=role.name)
    return Fragment(key, html, parts=(bar, drawing, listed))


PAGE: Final = Page(title=lambda address: f"Rollout of {address.key.name}", frame=frame, render=render, text=text)
