"""The pane of one rank: its state, its use, why it is not ready, its events and its last lines, as a fragment of HTML."""

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
from leaderworkerset.dashboard import firsterror
from leaderworkerset.dashboard.address import Address, PageKind
from leaderworkerset.dashboard.livemodel import LiveModel
from leaderworkerset.dashboard.logstream import LONGEST_LINE
from leaderworkerset.dashboard.markup import Safe, joined, tag
from leaderworkerset.dashboard.pages import cells
from leaderworkerset.diagnosis import loads
from leaderworkerset.diagnosis.diagnose import diagnose
from leaderworkerset.diagnosis.loads import RankLoad
from leaderworkerset.observation.diagnosing import observe_view
from leaderworkerset.observation.lists import Lists
from leaderworkerset.observation.podlogs import PodLogOptions, read
from leaderworkerset.views import changes, devices, masking, reasons
from leaderworkerset.views.events.eventhistory import Happening, History
from leaderworkerset.views.groups import Rank, View
from leaderworkerset.views.masking import Mask
from leaderworkerset.views.selection import Selection
from leaderworkerset.views.wording import counted

LINES: Final = 20
EVENTS: Final = 30
PATIENCE: Final = 5.0


async def pane(model: LiveModel, view: View, chosen: Selection) -> Safe | None:
    """Return the panel of one rank; None if the set has no such rank."""
    ranks = [rank for group in view.groups if group.name == chosen.group for rank in group.ranks]
    rank = next((rank for rank in ranks if rank.index == chosen.rank), None)
    if rank is None:
        return None
    lists = Lists(model.client)
    async with asyncio.TaskGroup() as tasks:
        told = tasks.create_task(_explained(model, lists, view, chosen))
        events = tasks.create_task(_events(lists, model, view, chosen))
        lines = tasks.create_task(_last_lines(model, rank))
        first = tasks.create_task(_first_error(model, view, ranks))
        use = tasks.create_task(_use(model, view, rank))
    return joined(
        tag("h2", f"{view.name} {rank.place} ", tag("small", rank.pod)),
        tag("p", changes.describe(rank), f" · {rank.node}" if rank.node else ""),
        use.result(),
        first.result(),
        tag("h3", "Last lines ", _all_lines(view, rank)),
        tag("pre", _marked(lines.result()) or "no lines", tabindex=0),
        told.result(),
        tag("h3", "Events"),
        events.result(),
    )


async def _first_error(model: LiveModel, view: View, ranks: Sequence[Rank]) -> Safe | None:
    """Return the first error of the group, with a link to its rank; None if no rank has a problem."""
    if not any(rank.deaths or reasons.is_problem(rank) for rank in ranks):
        return None
    first = await firsterror.find(model.client, ranks)
    if first is None:
        return None
    href = f"{Address(kind=PageKind.SET, key=view.key).path()}?rank={quote(first.rank)}"
    searched = f"the first error of {counted(first.read, 'rank')}"
    time = tag("time", first.time[11:19], datetime=first.time)
    return tag(
        "p", tag("mark", first.text), " ", tag("a", first.rank, href=href), " ", time, f", {searched}", class_="first"
    )


async def _use(model: LiveModel, view: View, rank: Rank) -> Safe | None:
    """Return what a rank uses, and its GPUs; None if the cluster measures nothing and names no GPUs."""
    key, now, found = ObjectKey(view.namespace, rank.pod), model.clock.now(), None
    with suppress(KubeError, TimeoutError):
        async with timeouts.within(PATIENCE):
            found = await model.client.find(POD_METRICS, key)
    row = RankLoad(view, rank, loads.by_pod([found]).get(key) if found else None)
    names = loads.measured([row])
    facts = [(loads.TITLES[name], text) for name, text in zip(names, loads.cells(row, names, now), strict=True)]
    facts += [("devices", " ".join(own))] if (own := devices.of_pod(rank.object)) else []
    shown = [tag("div", tag("dt", title), tag("dd", text)) for title, text in facts]
    return tag("dl", shown, class_="where") if shown else None


async def _explained(model: LiveModel, lists: Lists, view: View, chosen: Selection) -> Safe:
    try:
        async with timeouts.within(PATIENCE):
            observed = await observe_view(lists, view, chosen, model.clock)
    except (KubeError, TimeoutError, ExceptionGroup):
        return tag("p", "why it is not ready could not be read")
    told = diagnose(replace(observed, commands=model.commands), chosen)
    of_set = model.picture.told(view).told
    if (told.code, told.sentence) == (of_set.code, of_set.sentence):
        return tag("p", cells.verdict(told), " ", cells.code(told), " ", told.title, ": the cause of the whole set")
    return cells.cause(told)


async def _events(lists: Lists, model: LiveModel, view: View, chosen: Selection) -> Safe:
    try:
        async with timeouts.within(PATIENCE):
            events = await lists.all(Query(CORE_EVENTS, view.namespace))
    except (KubeError, TimeoutError):
        return tag("p", "events could not be read")
    others = [one.name for one in model.picture.views if one.namespace == view.namespace and one.name != view.name]
    return _listed(History(view.object, view.pods, others).read(events, chosen)[-EVENTS:])


def _listed(found: Sequence[Happening]) -> Safe:
    if not found:
        return tag("p", "none")
    items = [
        tag(
            "li",
            tag("time", one.last.strftime("%H:%M:%S"), datetime=one.last.isoformat()),
            " ⚠ " if one.is_warning else " ",
            tag("strong", one.reason),
            f" ({one.count} times) " if one.count > 1 else " ",
            one.message,
        )
        for one in reversed(found)
    ]
    return tag("ol", items, class_="events")


def _all_lines(view: View, rank: Rank) -> Safe:
    href = f"{Address(kind=PageKind.LOGS, key=view.key).path()}?rank={quote(rank.place)}"
    return tag("a", "all", href=href, aria_label=f"All lines of {rank.place}")


def _marked(text: str) -> Safe | None:
    """Return lines with a mark on the line that explains the end of the program; commands quote the same line."""
    lines = text.split("\n") if text else []
    found = errorlines.telling(lines)
    telling = [at for at, line in enumerate(lines) if found.certain and line.strip() == found.line][-1:]
    shown = [tag("mark", line) if at in telling else line for at, line in enumerate(lines)]
    return joined(*(part for line in shown for part in (line, "\n"))) if lines else None


async def _last_lines(model: LiveModel, rank: Rank) -> str:
    """Return the last lines of a rank, with secrets and the values of variables with names of secrets masked."""
    if rank.object is None:
        return ""
    try:
        async with timeouts.within(PATIENCE):
            found = [line async for line in read(model.client, rank.object, PodLogOptions(tail=LINES))]
    except (KubeError, TimeoutError) as error:
        return str(error) or f"no answer within {PATIENCE:g} s"
    text = "\n".join(line[:LONGEST_LINE].decode(errors="replace") for line in found)
    return Mask(masking.known((), [rank.object])).text(text)
