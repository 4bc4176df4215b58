"""Builds the rank panel in HTML, with the state, usage, reason, events and last log lines."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final
from urllib.parse import quote

from msgspec.structs import replace

from kuberuntime import timeouts
from kuberuntime.client.requests import Selection as Query
from kuberuntime.errors import KubeError
from kuberuntime.objects import errorlines
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import CORE_EVENTS, POD_METRICS
from leaderworkerset.api.eventvalue import EventValue
from lwsctl.dashboard import availableactions, firsterror
from lwsctl.dashboard.actions import Verb
from lwsctl.dashboard.address import Address, PageKind
from lwsctl.dashboard.livemodel import LiveModel
from lwsctl.dashboard.logstream import LONGEST_LINE
from lwsctl.dashboard.markup import Safe, join, tag
from lwsctl.dashboard.pages import cells
from lwsctl.diagnosis.diagnose import diagnose
from lwsctl.model.groups import Group, Rank
from lwsctl.model.leaderworkerset import View
from lwsctl.model.usage import measured_rank
from lwsctl.observation import podsecrets
from lwsctl.observation.diagnosisinput import observe_view
from lwsctl.observation.evidence import with_evidence
from lwsctl.observation.lists import Lists
from lwsctl.observation.podlogs import PodLogOptions, read
from lwsctl.views import changes, devices, rankusage
from lwsctl.views.eventhistory import History
from lwsctl.views.selection import Selection
from lwsctl.views.wording import format_count

LINES: Final = 20
"""The number of last log lines that are shown below the first error."""

EVENTS: Final = 30
PATIENCE: Final = 5.0


async def rank_panel(model: LiveModel, view: View, selection: Selection) -> Safe | None:
    """Return the panel of a rank, or None if the rank does not exist."""
    groups = [group for group in view.groups if group.name == selection.group]
    ranks = [rank for group in groups for rank in group.ranks]
    rank = next((rank for rank in ranks if rank.index == selection.rank), None)
    if rank is None:
        return None
    lists = Lists(model.client)
    async with asyncio.TaskGroup() as tasks:
        explanation = tasks.create_task(_explanation(model, lists, view, selection))
        events = tasks.create_task(_events_html(lists, model, view, selection))
        lines = tasks.create_task(_last_lines(model, rank))
        first = tasks.create_task(_first_error(model, view, ranks))
        use = tasks.create_task(_usage_html(model, view, rank))
    return join(
        tag("h2", f"{view.name} {rank.place} ", tag("small", rank.pod)),
        tag("p", changes.describe(rank), f" · {rank.node}" if rank.node else ""),
        use.result(),
        first.result(),
        tag("h3", "Last lines · ", _log_link(view, rank)),
        tag("pre", _highlight_error(lines.result()) or "No lines", tabindex=0),
        explanation.result(),
        [_action_button(view, group, verb) for group in groups for verb in availableactions.group_actions(view, group)],
        events.result(),
    )


def _action_button(view: View, group: Group, verb: Verb) -> Safe:
    """Return the button of a group action. A script shows it to users with permission."""
    word = "Recover" if verb is Verb.RECOVER_GROUP else "Restart"
    about = {"data_namespace": view.namespace, "data_name": view.name, "data_group": str(group.name)}
    return tag("button", f"{word} group {group.name} …", type="button", hidden=True, data_verb=verb.value, **about)


async def _first_error(model: LiveModel, view: View, ranks: Sequence[Rank]) -> Safe | None:
    """Return the first error of the group with a link to its rank, or None if no rank has a problem."""
    if not any(rank.deaths or rank.is_problem for rank in ranks):
        return None
    first = await firsterror.find_first_error(model.client, {rank.place: rank for rank in ranks})
    if first is None:
        return None
    href = f"{Address(kind=PageKind.SET, key=view.key).path()}?rank={quote(first.rank)}"
    searched = f"the first error of {format_count(first.read, 'rank')}"
    time = tag("time", first.time[11:19], datetime=first.time)
    return tag(
        "p", tag("mark", first.text), " ", tag("a", first.rank, href=href), " ", time, f", {searched}", class_="first"
    )


async def _usage_html(model: LiveModel, view: View, rank: Rank) -> Safe | None:
    """Return the usage of a rank and its GPUs, or None if the cluster does not report the usage."""
    key, now, metrics = ObjectKey(view.namespace, rank.pod), model.clock.now(), None
    with suppress(KubeError, TimeoutError):
        async with timeouts.within(PATIENCE):
            metrics = await model.client.find(POD_METRICS, key)
    rank = measured_rank(rank, metrics)
    names = rankusage.resources([rank])
    facts = [
        (rankusage.TITLES[name], text)
        for name, text in zip(names, rankusage.usage_cells(rank, names, now), strict=True)
    ]
    facts += [("devices", " ".join(own))] if (own := devices.pod_devices(rank.object)) else []
    entries = [tag("div", tag("dt", title), tag("dd", text)) for title, text in facts]
    return tag("dl", entries, class_="where") if entries else None


async def _explanation(model: LiveModel, lists: Lists, view: View, selection: Selection) -> Safe:
    try:
        async with timeouts.within(PATIENCE):
            observed = await observe_view(lists, view, selection, model.clock)
    except (KubeError, TimeoutError, ExceptionGroup):
        return tag("p", "The reason could not be read")
    diagnosis = diagnose(replace(observed, commands=model.commands), selection)
    of_set = model.snapshot.with_diagnosis(view).diagnosis
    if diagnosis.code == of_set.code:
        is_same = diagnosis.sentence == of_set.sentence
        words = "The cause of the whole set" if is_same else cells.sentence(diagnosis.sentence)
        return tag("p", cells.verdict_html(diagnosis), " ", words, " ", cells.code_link(diagnosis))
    diagnosis = await with_evidence(model.client, diagnosis, model.read_episodes)
    return cells.cause_html(diagnosis)


async def _events_html(lists: Lists, model: LiveModel, view: View, selection: Selection) -> Safe:
    try:
        async with timeouts.within(PATIENCE):
            events = await lists.all(Query(CORE_EVENTS, view.namespace))
    except (KubeError, TimeoutError):
        return tag("p", "Events could not be read")
    history = History(view.object, view.pods, model.snapshot.names(view.namespace))
    return _event_list(history.read(events, selection)[-EVENTS:])


def _event_list(happenings: Sequence[EventValue]) -> Safe:
    title = tag("summary", format_count(len(happenings), "event"))
    items = [
        tag(
            "li",
            tag("time", happening.last.strftime("%H:%M:%S"), datetime=happening.last.isoformat()),
            " ⚠ " if happening.is_warning else " ",
            tag("strong", happening.reason),
            f" ({happening.count} times) " if happening.count > 1 else " ",
            happening.message,
        )
        for happening in reversed(happenings)
    ]
    return tag("details", title, tag("ol", items, class_="events"), class_="foldable")


def _log_link(view: View, rank: Rank) -> Safe:
    href = f"{Address(kind=PageKind.LOGS, key=view.key).path()}?rank={quote(rank.place)}"
    return tag("a", "all", href=href, aria_label=f"All lines of {rank.place}")


def _highlight_error(text: str) -> Safe | None:
    """Return lines in which the line that explains the exit is marked. Commands also quote this line."""
    lines = text.split("\n") if text else []
    error_line = errorlines.first_error(lines)
    telling = [at for at, line in enumerate(lines) if error_line.is_certain and line.strip() == error_line.line][-1:]
    marked_lines = [tag("mark", line) if at in telling else line for at, line in enumerate(lines)]
    return join(*(part for line in marked_lines for part in (line, "\n"))) if lines else None


async def _last_lines(model: LiveModel, rank: Rank) -> str:
    """Return the last lines of a rank with masked secrets."""
    if rank.object is None:
        return ""
    try:
        async with timeouts.within(PATIENCE):
            lines = [line async for line in read(model.client, rank.object, PodLogOptions(tail=errorlines.JUDGED))]
    except (KubeError, TimeoutError) as error:
        return str(error) or f"no response within {PATIENCE:g} s"
    text = "\n".join(line[:LONGEST_LINE].decode(errors="replace") for line in lines)
    mask = await podsecrets.build_mask(model.client, [rank.object])
    masked_lines = mask.text(text).split("\n")
    return "\n".join(errorlines.error_excerpt(masked_lines, LINES)) if text else ""
