"""Shows rollouts, recreations and failures of the last hour, as a chart and as a list. Pure.

The input is the events about the set and its recorded failures. Events of pods and StatefulSets are omitted, because
a group can have many of them for one failure, and a StatefulSet also creates pods without scaling. The chart ends at
the current minute, so that it changes every minute.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct

from kuberuntime.client.requests import Selection as Query
from kuberuntime.objects import timestamps
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CORE_EVENTS
from leaderworkerset.api.episode import Episode
from leaderworkerset.api.eventvalue import EventValue
from leaderworkerset.api.leaderworkerset import KIND
from leaderworkerset.decisions.failureevents import (
    GROUPS_UPDATING,
    MOVING_GROUP,
    creating_revision_event,
    recreating_group_event,
    restarted_in_place_event,
)
from lwsctl.dashboard.address import Address, PageKind
from lwsctl.dashboard.fragments import Fragment
from lwsctl.dashboard.markup import Safe, join, tag
from lwsctl.dashboard.pages.page import PageFacts
from lwsctl.dashboard.snapshot import Snapshot
from lwsctl.model.leaderworkerset import View
from lwsctl.views.eventhistory import History
from lwsctl.views.wording import format_count

HOUR: Final = timedelta(hours=1)
MINUTES: Final = 60
READING: Final = "Events are being read …"
UNREAD: Final = "Events could not be read, or there are too many."

LISTED: Final = 40
"""The maximum number of list items. The latest items are shown."""


class Lane(StrEnum):
    """The kinds of items. Each kind has a row in the chart."""

    ROLLOUTS = "rollouts"
    RECREATIONS = "recreations"
    FAILURES = "failures"


LANES: Final[Mapping[str, Lane]] = {
    creating_revision_event.reason: Lane.ROLLOUTS,
    GROUPS_UPDATING: Lane.ROLLOUTS,
    recreating_group_event.reason: Lane.RECREATIONS,
    restarted_in_place_event.reason: Lane.RECREATIONS,
    MOVING_GROUP: Lane.RECREATIONS,
}
"""The chart row of each event reason.

Warnings are failures if failures are not recorded. Other events are omitted.
"""


class TimelineItem(Struct, frozen=True):
    """An event or a recorded failure, and the address of its page, if any."""

    time: datetime
    lane: Lane
    words: str
    href: str = ""


def timeline_fragment(snapshot: Snapshot, view: View, facts: PageFacts) -> Fragment:
    """Return the collapsed chart and list."""
    end = snapshot.now.replace(second=0, microsecond=0) + timedelta(minutes=1)
    last_hour = [moment for moment in timeline_items(snapshot, view, facts) if end - HOUR <= moment.time < end]
    unread = None if facts.is_read_kind(CORE_EVENTS) else tag("p", UNREAD if facts.is_read else READING)
    title = tag("summary", format_count(len(last_hour), "event"))
    listed = tag(
        "details", title, tag("ol", map(_item_html, reversed(last_hour[-LISTED:])), class_="events"), class_="foldable"
    )
    html = tag("div", _chart(last_hour, end), unread, listed if last_hour else None, id="timeline-text")
    return Fragment("timeline-text", html)


def timeline_items(snapshot: Snapshot, view: View, facts: PageFacts) -> list[TimelineItem]:
    """Return the known items of a set, starting with the oldest."""
    history = History(view.object, view.pods, snapshot.names(view.namespace))
    are_recorded = facts.episodes is not None
    happened = [
        _event_item(happening, lane)
        for happening in history.read(filter(_is_of_set, facts.get(CORE_EVENTS)))
        if (lane := _lane(happening, are_recorded=are_recorded))
    ]
    return sorted([*happened, *_episode_items(view, facts.episodes or ())], key=lambda moment: moment.time)


def reads(key: ObjectKey) -> Sequence[Query]:
    """Return the event list of one set. A namespace may contain thousands of other events."""
    about = f"involvedObject.kind={KIND},involvedObject.name={key.name}"
    return [Query(CORE_EVENTS, key.namespace, field_selector=about)]


def _is_of_set(event: JSONObject) -> bool:
    return (event.get("involvedObject") or {}).get("kind") == KIND


def _lane(happening: EventValue, *, are_recorded: bool) -> Lane | None:
    if happening.is_warning:
        return None if are_recorded else Lane.FAILURES
    return LANES.get(happening.reason)


def _event_item(happening: EventValue, lane: Lane) -> TimelineItem:
    times = f" ({happening.count} times)" if happening.count > 1 else ""
    return TimelineItem(happening.last, lane, f"{happening.reason}{times}: {happening.object}: {happening.message}")


def _episode_items(view: View, episodes: Sequence[Episode]) -> Iterator[TimelineItem]:
    for episode in episodes:
        place = f"{episode.group}/{episode.number}"
        moment = timestamps.read(episode.time)
        if moment is not None:
            words = f"group {episode.group} {episode.outcome.description}: {episode.failure or episode.failed_pod}"
            yield TimelineItem(
                moment,
                Lane.FAILURES,
                words,
                Address(kind=PageKind.HISTORY, key=view.key, episode=place).path(),
            )


def _chart(last_hour: Sequence[TimelineItem], end: datetime) -> Safe:
    """Return a row for each kind with a column for each minute. The height of a mark shows the number of items."""
    rows = [_lane_row(lane, [moment for moment in last_hour if moment.lane is lane], end) for lane in Lane]
    scale = tag("p", tag("span", f"{end - HOUR:%H:%M}"), tag("span", "The last hour"), tag("span", f"{end:%H:%M} UTC"))
    return tag("div", rows, tag("div", scale, class_="scale"), class_="lanes")


def _lane_row(lane: Lane, last_hour: Sequence[TimelineItem], end: datetime) -> Safe:
    minutes = Counter(int((moment.time - (end - HOUR)).total_seconds() // 60) for moment in last_hour)
    marks = (
        tag("rect", x=minute, y=max(10 - 4 * count, 0), width=1, height=min(4 * count, 10))
        for minute, count in sorted(minutes.items())
    )
    drawing = tag(
        "svg",
        tag("title", f"{lane.value}: {format_count(len(last_hour), 'event')} in the last hour"),
        marks,
        viewBox=f"0 0 {MINUTES} 10",
        preserveAspectRatio="none",
        role="img",
        class_=f"lane {lane.value}",
    )
    return join(tag("span", f"{lane.value.capitalize()} {len(last_hour) or ''}".strip()), drawing)


def _item_html(moment: TimelineItem) -> Safe:
    clock = tag("time", f"{moment.time:%H:%M:%S}", datetime=moment.time.isoformat())
    words = tag("a", moment.words, href=moment.href) if moment.href else moment.words
    return tag("li", clock, " ", tag("strong", moment.lane.value), " ", words)
