"""Returns the events of a LeaderWorkerSet, group or rank in chronological order. Pure.

The input is the events (v1) of a namespace, the LeaderWorkerSet, its pods, and the names of the LeaderWorkerSets in
the namespace. Events of deleted pods are found by the name of the involved object. A pod `web-0-1` may be a rank of
`web` or a leader of `web-0`. If the pod exists, its UID determines the owner. Otherwise, the event belongs to the
LeaderWorkerSet with the longer name.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from kuberuntime.objects import decimals, meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import groupname
from leaderworkerset.api.disaggregatedset import KIND as SET_KIND
from leaderworkerset.api.eventvalue import EventValue, Place, convert
from leaderworkerset.api.groupname import group_and_rank, parse_group_name
from leaderworkerset.api.leaderworkerset import KIND
from lwsctl.views.selection import Selection

NUMBER, KEY = r"\d+", r"[0-9a-f]{8}"
RANK: Final = r"(?:-(?P<rank>\d+))?"
GENERATED: Final = r"(?:-[a-z0-9]{1,10}){0,2}"
"""The generated name suffix of ReplicaSets, and of leaders of groups with random keys."""


class History:
    """Selects and parses the events of one LeaderWorkerSet."""

    def __init__(self, lws: JSONObject, pods: Collection[JSONObject] = (), names: Iterable[str] = ()) -> None:
        self._name = meta.name(lws)
        self._uids = {meta.uid(lws), *map(meta.uid, pods)}
        self._others = [other for other in names if other.startswith(f"{self._name}-")]
        self._places = {meta.name(pod): group_and_rank(pod) for pod in pods}
        self._is_keyed = groupname.uses_random_keys(lws)
        stem, group = re.escape(self._name), KEY if self._is_keyed else NUMBER
        numbers = f"{stem}(?:-(?P<group>{group}))?{RANK}"
        self._patterns = {kind: re.compile(numbers) for kind in ("Pod", "StatefulSet", "Service")}
        self._patterns["PersistentVolumeClaim"] = re.compile(f"(?:.+-)?{numbers}")
        self._foreign = re.compile(f"{stem}-(?P<group>{group})(?:-.+)?")
        self._generated = re.compile(stem + GENERATED)

    def read(self, events: Iterable[JSONObject], selection: Selection | None = None) -> list[EventValue]:
        """Return the selected events, starting with the oldest."""
        occurrences = (self.parse(event) for event in events)
        kept = [
            occurrence
            for occurrence in occurrences
            if occurrence is not None and (selection is None or is_in_selection(occurrence.place, selection))
        ]
        return sorted(kept, key=lambda occurrence: (occurrence.last, occurrence.ident))

    def parse(self, event: JSONObject) -> EventValue | None:
        """Parse one event. Return None if it belongs to a different object."""
        place = self._place(event)
        return None if place is None else convert(event, place)

    def _place(self, event: JSONObject) -> Place | None:
        about = event.get("involvedObject") or {}
        kind, name = str(about.get("kind") or ""), str(about.get("name") or "")
        if kind == KIND:
            related = event.get("related") or {}
            own = name == self._name
            return (self._numbers("Pod", str(related.get("name") or "")) or (None, None)) if own else None
        if about.get("uid") not in self._uids and any(name == o or name.startswith(f"{o}-") for o in self._others):
            return None
        return self._numbers(kind, name)

    def _numbers(self, kind: str, name: str) -> Place | None:
        """Return the group and rank in the name of a pod. A leader pod is rank 0 of its group."""
        if kind == "Pod" and self._places.get(name):
            return self._places[name]
        match = self._patterns.get(kind, self._foreign).fullmatch(name)
        if match is None:
            return (None, None) if self._is_keyed and self._generated.fullmatch(name) else None
        captures = match.groupdict(default="")
        group, rank = parse_group_name(captures.get("group", "")), decimals.natural(captures.get("rank", ""))
        if kind == "Pod":
            return None if group is None else (group, rank or 0)
        return (group, rank)


def set_events(obj: JSONObject, parts: Sequence[History], events: Iterable[JSONObject]) -> list[EventValue]:
    """Return the events of a DisaggregatedSet and its LeaderWorkerSets, starting with the oldest.

    The names of its objects have its name and a dash as prefix. Only events with this prefix are compared with the
    parts.
    """
    name = meta.name(obj)
    occurrences: list[EventValue] = []
    for event in events:
        about = event.get("involvedObject") or {}
        object_name = str(about.get("name") or "")
        if about.get("kind") == SET_KIND and object_name == name:
            occurrences.append(convert(event))
        elif f"{name}-" in object_name:
            occurrences += list(islice(filter(None, (part.parse(event) for part in parts)), 1))
    return sorted(occurrences, key=lambda occurrence: (occurrence.last, occurrence.ident))


def is_in_selection(place: Place, selection: Selection) -> bool:
    """Return whether an event of this group or rank is part of the selection.

    Events of a group belong to all its ranks.
    """
    if selection.group is None:
        return True
    return place[0] == selection.group and (selection.rank is None or place[1] in (None, selection.rank))


def recent_events(occurrences: Iterable[EventValue], length: timedelta, now: datetime) -> list[EventValue]:
    """Return the events within the last `duration`."""
    return [occurrence for occurrence in occurrences if now - occurrence.last <= length]


def document(occurrence: EventValue) -> JSONObject:
    """Return an event as machine-readable data with stable field names."""
    group, rank = occurrence.place
    return {
        "last": occurrence.last.isoformat(),
        "count": occurrence.count,
        "type": "Warning" if occurrence.is_warning else "Normal",
        "reason": occurrence.reason,
        "object": occurrence.object,
        "group": group,
        "rank": rank,
        "message": occurrence.message,
        "reporter": occurrence.reporter,
    }
