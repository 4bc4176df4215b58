"""Tests that events are found by object, even for deleted pods, and sorted by time."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kuberuntime.objects.meta import JSONObject
from lwsctl.views import eventhistory
from lwsctl.views.eventhistory import History
from lwsctl.views.selection import Selection

LWS = {"metadata": {"name": "web", "uid": "of-web"}}


def event(kind: str, name: str, second: int = 0, **fields: Any) -> JSONObject:
    about = {"kind": kind, "name": name, "uid": fields.pop("about_uid", "")}
    return {
        "metadata": {"name": f"{name}.{second}", "uid": f"{kind}-{name}-{second}"},
        "involvedObject": about,
        "lastTimestamp": f"2026-01-01T00:00:{second:02}Z",
        "type": "Normal",
        "reason": "Created",
        "message": f"about {name}",
        **fields,
    }


@pytest.mark.parametrize(
    ("kind", "name", "place"),
    [
        ("LeaderWorkerSet", "web", (None, None)),
        ("LeaderWorkerSet", "webs", "not ours"),
        ("StatefulSet", "web", (None, None)),
        ("StatefulSet", "web-3", (3, None)),
        ("Pod", "web-3", (3, 0)),
        ("Pod", "web-3-11", (3, 11)),
        ("Pod", "web-frontend-5d", "not ours"),
        ("Pod", "web", "not ours"),
        ("Pod", "other-3", "not ours"),
        ("Service", "web-1", (1, None)),
        ("PersistentVolumeClaim", "data-web-1-2", (1, 2)),
        ("PodGroup", "web-2-5f6d", (2, None)),
        ("Deployment", "web", "not ours"),
    ],
)
def test_events_are_arranged_by_their_objects(kind: str, name: str, place: object) -> None:
    found = History(LWS).parse(event(kind, name))
    assert (found.place if found else "not ours") == place


def test_related_pod_is_the_place() -> None:
    found = History(LWS).parse(event("LeaderWorkerSet", "web", related={"kind": "Pod", "name": "web-2-1"}))
    assert found is not None
    assert found.place == (2, 1)


def test_longer_name_wins_unless_the_uid_differs() -> None:
    pods = [{"metadata": {"name": "web-0-1", "uid": "mine"}}]
    chooser = History(LWS, pods, ["web-0", "other"])
    assert chooser.parse(event("Pod", "web-0-1")) is None
    assert chooser.parse(event("Pod", "web-0-1", about_uid="mine")) is not None
    assert chooser.parse(event("Pod", "web-1-1")) is not None


def test_oldest_event_comes_first_and_groups_are_selected() -> None:
    events = [
        event("Pod", "web-1-1", 9, type="Warning", count=4),
        event("StatefulSet", "web-1", 3),
        event("Pod", "web-0", 5),
        event("LeaderWorkerSet", "web", 1),
        event("Pod", "web-1", 7),
    ]
    read = History(LWS).read
    assert [one.last.second for one in read(events)] == [1, 3, 5, 7, 9]
    assert [one.object for one in read(events, Selection("web", 1))] == [
        "statefulset/web-1",
        "pod/web-1",
        "pod/web-1-1",
    ]
    assert [one.object for one in read(events, Selection("web", 1, 1))] == ["statefulset/web-1", "pod/web-1-1"]
    newest = read(events)[-1]
    assert (newest.count, newest.is_warning) == (4, True)
    now = datetime(2026, 1, 1, 0, 0, 10, tzinfo=UTC)
    assert [one.last.second for one in eventhistory.recent_events(read(events), timedelta(seconds=3), now)] == [7, 9]


def test_series_has_a_count_and_a_last_time() -> None:
    series = {"count": 7, "lastObservedTime": "2026-01-01T01:00:00.000000Z"}
    (found,) = History(LWS).read([event("Pod", "web-0", series=series, message="no\n  node", reportingComponent="me")])
    assert (found.count, found.last.hour, found.message) == (7, 1, "no node")
    assert eventhistory.document(found) == {
        "last": "2026-01-01T01:00:00+00:00",
        "count": 7,
        "type": "Normal",
        "reason": "Created",
        "object": "pod/web-0",
        "group": 0,
        "rank": 0,
        "message": "no node",
        "reporter": "me",
    }


def test_events_of_a_disaggregated_set_include_its_parts() -> None:
    obj = {"metadata": {"name": "split", "uid": "of-split"}}
    names = ["split-0-new-decode", "split-0-new-prefill"]
    parts = [History({"metadata": {"name": name, "uid": name}}, (), names) for name in names]
    events = [
        event("Pod", "split-0-new-decode-1", 3),
        event("DisaggregatedSet", "split", 2),
        event("LeaderWorkerSet", "split-0-new-prefill", 1),
        event("PersistentVolumeClaim", "data-split-0-new-prefill-0", 4),
        event("DisaggregatedSet", "splitting", 5),
        event("Pod", "split-0-old-decode-1", 6),
        event("Pod", "other-0", 7),
    ]
    found = eventhistory.set_events(obj, parts, events)
    assert [one.object for one in found] == [
        "leaderworkerset/split-0-new-prefill",
        "disaggregatedset/split",
        "pod/split-0-new-decode-1",
        "persistentvolumeclaim/data-split-0-new-prefill-0",
    ]
