"""Converts an API event (v1) to a value for display and storage. The functions are pure."""

from datetime import datetime
from functools import partial
from typing import TypeAlias

from msgspec import Struct

from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.timestamps import BEGINNING
from kuberuntime.texts import errorboundary
from kuberuntime.texts.masking import mask_message
from leaderworkerset.api.groupname import GroupName

Place: TypeAlias = tuple[GroupName | None, int | None]
"""The group and rank of an event. Both are empty for an event about the LeaderWorkerSet itself."""


class EventValue(Struct, frozen=True, kw_only=True):
    """An event for display. `ident` does not change if only the event count increases."""

    ident: str
    last: datetime
    count: int
    is_warning: bool
    reason: str
    object: str
    message: str
    place: Place
    reporter: str
    stored: JSONObject


def last_occurrence(event: JSONObject) -> datetime:
    """Return the last occurrence of an event (v1), or the minimum datetime if the event has no time."""
    series = event.get("series") or {}
    return max(
        map(timestamps.moment, (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime")))
    )


def convert(event: JSONObject, place: Place = (None, None)) -> EventValue:
    """Convert an event with its group and rank. If the event is not readable, its message is the error."""
    return errorboundary.attempt(partial(_convert, event, place), partial(_unreadable_event, event, place))


def _unreadable_event(event: JSONObject, place: Place, error: str) -> EventValue:
    return EventValue(
        ident=meta.uid(event) or meta.name(event),
        last=BEGINNING,
        count=1,
        is_warning=True,
        reason="Unreadable",
        object=f"event/{meta.name(event)}",
        message=error,
        place=place,
        reporter="",
        stored=event,
    )


def _convert(event: JSONObject, place: Place) -> EventValue:
    about = event.get("involvedObject") or {}
    series = event.get("series") or {}
    return EventValue(
        ident=meta.uid(event) or meta.name(event),
        last=last_occurrence(event),
        count=int(series.get("count") or event.get("count") or 1),
        is_warning=event.get("type") == "Warning",
        reason=str(event.get("reason") or ""),
        object=f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}",
        message=" ".join(mask_message(str(event.get("message") or "")).split()),
        place=place,
        reporter=event.get("reportingComponent") or (event.get("source") or {}).get("component") or "",
        stored=event,
    )
