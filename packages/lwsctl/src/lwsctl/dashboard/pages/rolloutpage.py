"""Shows the rollout page with progress, chart, changes, next steps, and the groups that delay the rollout. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.client.requests import Selection as Query
from kuberuntime.client.requests import select_one
from kuberuntime.objects.ordinals import ranges
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, DEPLOYMENTS, STATEFULSETS
from kuberuntime.texts.fieldchanges import FIELDS_SHOWN, FieldChange, field_changes
from kuberuntime.texts.masking import Mask
from leaderworkerset.api import groupname, labels
from leaderworkerset.decisions.revisioncontent import (
    RevisionEntry,
    UnreadableRevisionError,
    current_entry,
    previous_entry,
    revision_content,
)
from lwsctl.dashboard import availableactions
from lwsctl.dashboard.address import Address
from lwsctl.dashboard.fragments import Fragment, Rendering, region
from lwsctl.dashboard.markup import Safe, join, tag
from lwsctl.dashboard.pages import cells, revisionchart, setheader, totals
from lwsctl.dashboard.pages.page import Page, PageFacts
from lwsctl.dashboard.pages.revisionchart import UpdateTimes
from lwsctl.dashboard.snapshot import Snapshot
from lwsctl.model.groups import Group
from lwsctl.model.leaderworkerset import View
from lwsctl.rollout import applyforecast, revisionhistory, rolloutprogress
from lwsctl.rollout.applyforecast import ApplyForecast
from lwsctl.rollout.rolloutprogress import RolloutProgress
from lwsctl.views.reasons import first_problem
from lwsctl.views.wording import duration, format_count

GROUPS: Final = ("Group", "Step", "Revision", "Ready ranks", "Why")
PLAN: Final = "Next steps, if groups become ready as expected"
GLYPHS: Final = {
    "done": ("●", "ready"),
    "starting": ("◐", "starting"),
    "held": ("▢", "missing"),
    "pending": ("○", "missing"),
}
"""The symbol of each group step, and the class for its color."""

MARKS: Final = 1000
"""The maximum number of groups that have a symbol. The number of other groups is shown after these symbols."""

STEPS: Final = ("Next step", "Groups", "Available groups", "Extra groups")


class LastChange(Struct, frozen=True):
    """The latest revision, the previous revision, and the fields that differ."""

    before: RevisionEntry
    current: RevisionEntry
    fields: Sequence[FieldChange]

    @property
    def title(self) -> str:
        """Return the revision numbers, and the images or the first field that differs."""
        images = {
            f"{totals.short_image(str(change.before))} → {totals.short_image(str(change.after))}": None
            for change in self.fields
            if change.path.endswith(".image")
        }
        others = [f"{change.path.rpartition('.')[2]} changed" for change in self.fields] or ["the same content"]
        more = f" and {format_count(len(others) - 1, 'more field')}" if len(others) > 1 else ""
        what = ", ".join(images) or f"{others[0]}{more}"
        return f"Revision {self.before.number} → {self.current.number}: {what}"


def reads(address: Address) -> Sequence[Query]:
    """Return the lists, which are the leader workload, which contains the latest revision, and all revisions."""
    name, namespace = address.key.name, address.key.namespace
    own = f"{labels.NAME}={name},{labels.TEMPLATE_REVISION_HASH}"
    return [
        select_one(STATEFULSETS, address.key),
        select_one(DEPLOYMENTS, address.key),
        Query(CONTROLLER_REVISIONS, namespace, own),
        Query(CONTROLLER_REVISIONS, namespace, f"{labels.HISTORY_OF}={name}"),
    ]


def frame(address: Address, rendering: Rendering) -> Safe:
    """Return the page with its regions."""
    return join(
        setheader.frame(address, rendering),
        region("div", "progress", rendering),
        region("div", "cause", rendering),
        _collapsed_section("The last change (reverted by undo)", region("div", "change", rendering)),
        _collapsed_section("The plan", cells.table("steps-to-come", STEPS, region("tbody", "steps", rendering), PLAN)),
        _collapsed_section(
            "All groups",
            cells.table("plain", GROUPS, region("tbody", "rows", rendering), f"The groups of {address.key.name}"),
        ),
    )


def render(snapshot: Snapshot, address: Address, facts: PageFacts) -> Rendering:
    """Return the fragments, or a message if the set does not exist."""
    view = _find(snapshot, address, facts)
    if view is None:
        return cells.missing_set_rendering(snapshot, address, "progress", "cause", "change", "steps", "rows")
    progress, plan = rolloutprogress.measure_progress(view, snapshot.now), _forecast(view)
    course, steps = revisionchart.update_times(view.newest_groups, len(view.groups)), _steps_of_groups(view, progress)
    change = _last_change(view, facts)
    actions = availableactions.set_actions(view, has_past=previous_entry(_entries(view, facts)) is not None)
    return {
        "trouble": cells.outdated_notes(snapshot),
        "head": [setheader.header_fragment(snapshot, view, data_actions=actions)],
        "progress": [
            _title_fragment(course, progress, change),
            rollout_chart("rollout-picture", steps, course),
            _basis_fragment(progress, plan),
        ],
        "cause": [] if progress.is_complete else [cells.cause_fragment(view.diagnosis)],
        "change": [_change_fragment(change)],
        "steps": _step_fragments(plan),
        "rows": [_group_row(group, steps[str(group.name)]) for group in view.groups],
    }


def text(snapshot: Snapshot, address: Address, facts: PageFacts) -> Iterator[str]:
    """Yield the lines of the page in text format."""
    view = _find(snapshot, address, facts)
    if view is None:
        yield f"{address.key.name} does not exist in namespace {address.key.namespace}"
        return
    progress = rolloutprogress.measure_progress(view, snapshot.now)
    yield f"{rolloutprogress.progress_bar(progress)} {rolloutprogress.progress_line(progress)}"
    yield from [progress.reason] if progress.reason else []


def _find(snapshot: Snapshot, address: Address, facts: PageFacts) -> View | None:
    """Return the LeaderWorkerSet of the page with its leader workload. Return None if it does not exist."""
    view = snapshot.find(address.key)
    if view is None:
        return None
    workloads = facts.get(DEPLOYMENTS if groupname.uses_random_keys(view.object) else STATEFULSETS)
    return replace(view, leaders=next(iter(workloads), None))


def _forecast(view: View) -> ApplyForecast | None:
    """Return the remaining controller steps, or None if they cannot be predicted."""
    try:
        return applyforecast.forecast_apply(view, view.object)
    except ValueError:  # invalid for the controller as well, or too many groups
        return None


def _title_fragment(course: UpdateTimes | None, progress: RolloutProgress, change: LastChange | str) -> Fragment:
    """Return the change and its progress, or the duration of a completed rollout."""
    words = rolloutprogress.progress_line(progress).partition(": ")[2]
    if progress.is_complete:
        took = f" It took {duration(course.last_change - course.first_update)}." if course is not None else ""
        words = f"Complete: {words}.{took}"
    name = change.title if isinstance(change, LastChange) else change
    bar = cells.bar(
        progress.done_groups,
        progress.desired_groups,
        f"{progress.done_groups} of {progress.desired_groups} groups updated",
    )
    return Fragment("rollout-title", tag("div", tag("h2", name), tag("p", bar, " ", words), id="rollout-title"))


def _basis_fragment(progress: RolloutProgress, plan: ApplyForecast | None) -> Fragment:
    """Return the limits of the rollout, and the basis of its estimate."""
    words = []
    if plan is not None:
        limits = plan.budget
        words.append(
            f"Limits: at most {format_count(limits.unavailable, 'group')} unavailable, {format_count(limits.surge, 'extra group')}, partition {limits.partition}."
        )
    if progress.remaining is not None and not progress.is_paused:
        words.append(
            f"The estimate is based on the {format_count(progress.done_groups, 'group')} that this rollout has completed."
        )
    return cells.update_part("rollout-basis", "p", " ".join(words), class_="hint")


def _step_fragments(plan: ApplyForecast | None) -> list[Fragment]:
    waves = plan.forecast.waves if plan else ()
    return [
        cells.plain_row(
            f"step/{number}",
            number,
            ranges(wave.groups) or "surplus groups are deleted",
            wave.available_groups,
            wave.surge,
        )
        for number, wave in enumerate(waves, start=1)
    ]


def _steps_of_groups(view: View, progress: RolloutProgress) -> dict[str, str]:
    newest = {group.index for group in view.newest_groups}
    return {
        str(group.name): group_step(group, is_updated=group.index in newest, is_held=group.index < progress.held_groups)
        for group in view.groups
    }


def group_step(group: Group, *, is_updated: bool, is_held: bool = False) -> str:
    """Return the step of a group in a rollout, which is a key of `GLYPHS`."""
    if is_updated:
        return "done" if group.is_done else "starting"
    return "held" if is_held else "pending"


def rollout_chart(key: str, steps: Mapping[str, str], course: UpdateTimes | None) -> Fragment:
    """Return the chart of a rollout, with a symbol for each named group, a legend, and the progress over time."""
    counts = Counter(steps.values())
    marks = [
        cells.update_part(
            f"{key}/groups/{name}", "i", GLYPHS[step][0], class_=GLYPHS[step][1], title=f"Group {name}: {step}"
        )
        for name, step in islice(steps.items(), MARKS)
    ]
    words = ", ".join(f"{counts[step]} {step}" for step in GLYPHS if counts[step])
    meanings = [
        tag("span", tag("i", glyph, class_=name), f" {counts[step]} {step}")
        for step, (glyph, name) in GLYPHS.items()
        if counts[step]
    ]
    legend = cells.update_part(f"{key}/legend", "p", meanings, class_="legend")
    label = cells.update_part(f"{key}/words", "span", f"Groups by index: {words or 'none'}", class_="heard")
    more = f" and {len(steps) - len(marks)} more" if len(steps) > len(marks) else ""
    strip = tag("div", label.html, tag("span", [mark.html for mark in marks], more, aria_hidden="true"), class_="marks")
    curve = cells.update_part(f"{key}/course", "div", None if course is None else revisionchart.chart(course))
    html = tag("div", legend.html, strip, curve.html, id=key)
    return Fragment(key, html, parts=(legend, label, *marks, curve))


def _last_change(view: View, facts: PageFacts) -> LastChange | str:
    """Return the fields that differ from the previous revision, or the reason why they are unknown."""
    entries = _entries(view, facts)
    current, before = current_entry(entries), previous_entry(entries)
    if current is None or before is None:
        return (
            "There is no previous revision."
            if facts.is_read_kind(CONTROLLER_REVISIONS)
            else "Revisions could not be read."
        )
    try:
        old, new = ({"spec": revision_content(entry)} for entry in (before, current))
    except UnreadableRevisionError as error:
        return f"Unknown: {error}"
    return LastChange(before, current, list(islice(field_changes(old, new), FIELDS_SHOWN + 1)))


def _change_fragment(change: LastChange | str) -> Fragment:
    """Return the fields of a change without the values of environment variables."""
    if isinstance(change, str):
        return Fragment("change-text", tag("p", change, id="change-text"))
    lines = list(map(_format_field, change.fields))
    more = ["…"] if len(lines) > FIELDS_SHOWN else []
    current = change.current
    cause = f", {current.cause}" if current.cause else ""
    title = tag("p", f"Revision {change.before.number} → {current.number}, {current.created}{cause}")
    content = tag("pre", "\n".join([*lines[:FIELDS_SHOWN], *more]) or "the same content", tabindex=0)
    return Fragment("change-text", tag("div", title, content, id="change-text"))


def _entries(view: View, facts: PageFacts) -> list[RevisionEntry]:
    return revisionhistory.entries(view, facts.get(CONTROLLER_REVISIONS))


def _format_field(change: FieldChange) -> str:
    if ".env[" in change.path:
        return f"{change.path}: changed"
    return Mask().text(str(change))


def _collapsed_section(title: str, content: Safe) -> Safe:
    return tag("details", tag("summary", title), content, class_="foldable")


def _group_row(group: Group, step: str) -> Fragment:
    words = f"{GLYPHS[step][0]} {'blocked by the partition' if step == 'held' else step}"
    ready = f"{group.ready_ranks} of {len(group.ranks)}"
    return cells.plain_row(f"g/{group.name}", group.name, words, group.revision, ready, first_problem(group))


PAGE: Final = Page(
    title=lambda address: f"Rollout of {address.key.name}", frame=frame, render=render, text=text, reads=reads
)
