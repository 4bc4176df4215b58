"""Rollout: its progress, its course over time, its changes, the next steps, and the groups that delay it. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from kuberuntime.client.requests import Selection as Query
from kuberuntime.client.requests import only
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.ordinals import ranges
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, DEPLOYMENTS, STATEFULSETS
from kuberuntime.texts.fieldchanges import FIELDS_SHOWN, FieldChange, field_changes
from kuberuntime.texts.masking import Mask
from leaderworkerset.api import groupname, labels
from leaderworkerset.dashboard import offers
from leaderworkerset.dashboard.address import Address, PageKind
from leaderworkerset.dashboard.markup import Safe, joined, tag
from leaderworkerset.dashboard.pages import cells, revisionpicture
from leaderworkerset.dashboard.pages.page import Page, PageFacts
from leaderworkerset.dashboard.picture import Picture
from leaderworkerset.dashboard.pieces import Piece, Rendering, region
from leaderworkerset.decisions.revisioncontent import (
    Entry,
    UnreadableRevisionError,
    current_entry,
    previous_entry,
    revision_content,
)
from leaderworkerset.steering import foresight, pace, pasts
from leaderworkerset.steering.foresight import Foreseen, Situation
from leaderworkerset.steering.pace import RolloutProgress
from leaderworkerset.views.groups import Group, View
from leaderworkerset.views.reasons import first_problem
from leaderworkerset.views.wording import counted

GROUPS: Final = ("group", "step", "revision", "ready ranks", "why")
PLAN: Final = "Steps to come, if groups become ready as expected"
GLYPHS: Final = {
    "done": ("●", "ready"),
    "starting": ("◐", "starting"),
    "held": ("▢", "missing"),
    "to come": ("○", "missing"),
}
"""The glyph of each step of a group, and the class of its color."""

STEPS: Final = ("next step", "groups", "available meanwhile", "extra groups")


def reads(address: Address) -> Sequence[Query]:
    """Return the lists: the owner of the leaders, which has the newest revision, and all revisions."""
    name, namespace = address.key.name, address.key.namespace
    own = f"{labels.NAME}={name},{labels.TEMPLATE_REVISION_HASH}"
    return [
        only(STATEFULSETS, address.key),
        only(DEPLOYMENTS, address.key),
        Query(CONTROLLER_REVISIONS, namespace, own),
        Query(CONTROLLER_REVISIONS, namespace, f"{labels.HISTORY_OF}={name}"),
    ]


def frame(address: Address, rendering: Rendering) -> Safe:
    """Return the page with its regions."""
    return joined(
        region("header", "head", rendering),
        region("div", "progress", rendering),
        region("div", "cause", rendering),
        _folded("The last change, which undo reverses", region("div", "change", rendering)),
        _folded("The plan", cells.table("steps-to-come", STEPS, region("tbody", "steps", rendering), PLAN)),
        _folded(
            "All groups",
            cells.table("plain", GROUPS, region("tbody", "rows", rendering), f"The groups of {address.key.name}"),
        ),
    )


def render(picture: Picture, address: Address, facts: PageFacts) -> Rendering:
    """Return the pieces; for a set that does not exist a sentence that says so."""
    view = picture.find(address.key)
    if view is None:
        return cells.absent(picture, address, "progress", "cause", "change", "steps", "rows")
    leaders = _leaders(view, facts)
    progress, plan = pace.progress(view, leaders, picture.now), _foresee(view, leaders)
    diagnosis = picture.told(view).told
    return {
        "trouble": cells.trouble(picture),
        "head": [_head(view, progress, plan, has_past=previous_entry(_entries(view, facts)) is not None)],
        "progress": [_picture(view, leaders, progress)],
        "cause": [] if progress.is_complete else [cells.cause_piece("cause-text", diagnosis)],
        "change": [_change(view, facts)],
        "steps": _steps(plan),
        "rows": [_row(group, leaders, progress) for group in view.groups],
    }


def text(picture: Picture, address: Address, facts: PageFacts) -> Iterator[str]:
    """Yield the lines of the page as text."""
    view = picture.find(address.key)
    if view is None:
        yield f"{address.key.name} does not exist in namespace {address.key.namespace}"
        return
    progress = pace.progress(view, _leaders(view, facts), picture.now)
    yield f"{pace.bar(progress)} {pace.line(progress)}"
    yield from [progress.why] if progress.why else []


def _foresee(view: View, leaders: JSONObject | None) -> Foreseen | None:
    """Return the remaining steps of the controller; None if they cannot be computed."""
    try:
        return foresight.foresee(Situation(view=view, statefulset=leaders), view.object)
    except ValueError:  # values that the controller could not use either, or too many groups
        return None


def _leaders(view: View, facts: PageFacts) -> JSONObject | None:
    objects = facts.get(DEPLOYMENTS if groupname.is_hash_set(view.object) else STATEFULSETS)
    return next(iter(objects), None)


def _head(view: View, progress: RolloutProgress, plan: Foreseen | None, *, has_past: bool) -> Piece:
    budget = None
    if plan is not None:
        limits = plan.budget
        budget = tag(
            "p",
            f"budget: at most {counted(limits.unavailable, 'group')} unavailable, "
            f"{counted(limits.surge, 'extra group')}, partition {limits.partition}",
        )
    bar = cells.bar(progress.done, progress.wanted, f"{progress.done} of {progress.wanted} groups done")
    words = "complete: " if progress.is_complete else "", pace.line(progress).partition(": ")[2]
    state = cells.part("state", "div", tag("p", *words), bar)
    html = tag(
        "div",
        tag("h1", view.name, " ", tag("small", f"{view.namespace} · rollout")),
        cells.tabs(view.key, PageKind.ROLLOUT),
        state.html,
        budget,
        id="title",
        data_actions=offers.of_set(view, has_past=has_past),
    )
    return Piece("title", html, parts=(state,))


def _steps(plan: Foreseen | None) -> list[Piece]:
    waves = plan.forecast.waves if plan else ()
    return [
        cells.row(
            f"step/{number}",
            number,
            ranges(wave.groups) or "surplus groups are deleted",
            wave.available,
            wave.extra,
        )
        for number, wave in enumerate(waves, start=1)
    ]


def _step(group: Group, leaders: JSONObject | None, progress: RolloutProgress) -> str:
    newest = groupname.revision(leaders or {})
    if newest and group.revision == newest:
        return "done" if group.is_ready else "starting"
    return "held" if group.index < progress.held else "to come"


def _picture(view: View, leaders: JSONObject | None, progress: RolloutProgress) -> Piece:
    """Return the picture of the rollout: a mark for each group in the order of indexes, and the meaning of marks."""
    key = "rollout-picture"
    steps = {group.name: _step(group, leaders, progress) for group in view.groups}
    counts = Counter(steps.values())
    first = islice(steps.items(), cells.STRIP)
    marks = [cells.Mark(str(name), *GLYPHS[step], f"group {name}: {step}") for name, step in first]
    words = ", ".join(f"{counts[step]} {step}" for step in GLYPHS if counts[step])
    meanings = [tag("span", glyph, f" {counts[step]} {step} ") for step, (glyph, _) in GLYPHS.items() if counts[step]]
    legend = cells.part(f"{key}/legend", "p", meanings, class_="legend")
    strip = cells.marked(f"{key}/groups", marks, f"groups by index: {words or 'none'}", large=True)
    basis = None
    if progress.left is not None and not progress.is_paused:
        basis = tag(
            "p", f"The estimate is from the {counted(progress.done, 'group')} that this rollout has done until now."
        )
    course = revisionpicture.course(view, groupname.revision(leaders or {}))
    drawing = None if course is None else revisionpicture.picture(course)
    rest = cells.part(f"{key}/course", "div", drawing, basis)
    return Piece(key, tag("div", legend.html, strip.html, rest.html, id=key), parts=(legend, strip, rest))


def _change(view: View, facts: PageFacts) -> Piece:
    """Return the fields that differ from the previous revision, without values of variables."""
    entries = _entries(view, facts)
    current, before = current_entry(entries), previous_entry(entries)
    if current is None or before is None:
        words = "There is no earlier revision." if facts.knows(CONTROLLER_REVISIONS) else "Revisions could not be read."
        return Piece("change-text", tag("p", words, id="change-text"))
    try:
        old, new = ({"spec": revision_content(entry)} for entry in (before, current))
    except UnreadableRevisionError as error:
        return Piece("change-text", tag("p", f"not known: {error}", id="change-text"))
    lines = [_field(change) for change in islice(field_changes(old, new), FIELDS_SHOWN + 1)]
    more = ["…"] if len(lines) > FIELDS_SHOWN else []
    cause = f", {current.cause}" if current.cause else ""
    title = tag("p", f"revision {before.number} → {current.number}, {current.created}{cause}")
    fields = tag("pre", "\n".join([*lines[:FIELDS_SHOWN], *more]) or "the same content", tabindex=0)
    return Piece("change-text", tag("div", title, fields, id="change-text"))


def _entries(view: View, facts: PageFacts) -> list[Entry]:
    return pasts.entries(view, facts.get(CONTROLLER_REVISIONS))


def _field(change: FieldChange) -> str:
    if ".env[" in change.path:
        return f"{change.path}: changed"
    return Mask().text(str(change))


def _folded(title: str, content: Safe) -> Safe:
    return tag("details", tag("summary", title), content, class_="foldable")


def _row(group: Group, leaders: JSONObject | None, progress: RolloutProgress) -> Piece:
    step = _step(group, leaders, progress)
    words = f"{GLYPHS[step][0]} {'held by the partition' if step == 'held' else step}"
    ready = f"{group.ready_ranks} of {len(group.ranks)}"
    return cells.row(f"g/{group.name}", group.name, words, group.revision, ready, first_problem(group))


PAGE: Final = Page(
    title=lambda address: f"Rollout of {address.key.name}", frame=frame, render=render, text=text, reads=reads
)
