"""Tests that events report what happened (contract 8.3), and never block other work."""

import asyncio
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs
from testkit.fakes import failure, respond
from testkit.transports import RequestTransport
from testkit.virtualtime import VirtualClock

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request, Response
from kuberuntime.controller.eventrecorder import FOLD, NAMES, QUEUE, SERIES, SERIES_SECONDS, EventRecorder
from kuberuntime.errors import ConnectionFailedError
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import AggregatedNote, Event

pytestmark = pytest.mark.virtual_time

LWS = {
    "apiVersion": "leaderworkerset.x-k8s.io/v1",
    "kind": "LeaderWorkerSet",
    "name": "lws",
    "namespace": "prod",
    "uid": "u",
    "resourceVersion": "7",
}
CREATED = Event("Normal", "GroupsProgressing", "Create", "Created leader statefulset lws", LWS)


class EventsServer(RequestTransport):
    """Stores Event objects. The `errors` are raised or returned first."""

    def __init__(self) -> None:
        self.objects: dict[str, JSONObject] = {}
        self.requests: list[Request] = []
        self.failures: list[Response | Exception] = []
        self.loses_answers = 0

    async def request(self, request: Request) -> Response:
        self.requests.append(request)
        await asyncio.sleep(0.001)
        if self.failures:
            error = self.failures.pop(0)
            if isinstance(error, Exception):
                raise error
            return error
        content = msgspec.json.decode(request.body)
        if request.method == "POST":
            if content["metadata"]["name"] in self.objects:
                return failure(409, "AlreadyExists")
            self.objects[content["metadata"]["name"]] = content
            if self.loses_answers:
                self.loses_answers -= 1
                raise ConnectionFailedError("the answer was lost")
            return respond(201, content)
        name = request.path.rsplit("/", 1)[1]
        if name not in self.objects:
            return failure(404, "NotFound")
        self.objects[name] |= content
        return respond(200, self.objects[name])


@dataclass
class Rig:
    """A running event recorder, and the server to which it writes."""

    server: EventsServer
    recorder: EventRecorder

    def all(self) -> list[JSONObject]:
        return list(self.server.objects.values())

    def methods(self) -> list[str]:
        return [request.method for request in self.server.requests]


@asynccontextmanager
async def rig() -> AsyncIterator[Rig]:
    server = EventsServer()
    recorder = EventRecorder(Client(server), "leaderworkerset", "leaderworkerset-host", VirtualClock())
    async with asyncio.TaskGroup() as group:
        task = group.create_task(recorder.run())
        yield Rig(server, recorder)
        task.cancel()


async def test_event_has_the_form_of_the_contract() -> None:
    async with rig() as r:
        pod = {"kind": "Pod", "name": "lws-0"}
        r.recorder.record(replace(CREATED, related=pod))
        await r.recorder.flush()
        assert r.server.requests[0].path == "/apis/events.k8s.io/v1/namespaces/prod/events"
        [event] = r.all()
        assert event == {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"lws.{1767225600_000_000_000:x}", "namespace": "prod"},
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "type": "Normal",
            "reason": "GroupsProgressing",
            "action": "Create",
            "note": "Created leader statefulset lws",
            "regarding": LWS,
            "related": pod,
            "reportingController": "leaderworkerset",
            "reportingInstance": "leaderworkerset-host",
        }


async def test_repetitions_become_one_series_with_few_writes() -> None:
    async with rig() as r:
        for _ in range(100):
            r.recorder.record(CREATED)
            await asyncio.sleep(0.1)
        await asyncio.sleep(2 * FOLD)
        [event] = r.all()
        assert event["series"] == {"count": 100, "lastObservedTime": "2026-01-01T00:00:09.900000Z"}
        assert r.methods() == ["POST", "PATCH", "PATCH"]


@pytest.mark.parametrize(
    "other",
    [
        {"note": "Created worker statefulset for leader pod lws-0"},
        {"type": "Warning"},
        {"reason": "GroupsUpdating"},
        {"action": "Update"},
        {"regarding": LWS | {"uid": "other"}},
        {"related": {"name": "lws-0"}},
    ],
    ids=lambda other: next(iter(other)),
)
async def test_event_with_a_different_field_is_separate(other: dict[str, Any]) -> None:
    async with rig() as r:
        r.recorder.record(CREATED)
        r.recorder.record(replace(CREATED, **other))
        await r.recorder.flush()
        assert len(r.all()) == 2
        assert not any("series" in event for event in r.all())


async def test_differs_from_upstream_status_write_keeps_the_series() -> None:
    """If the resourceVersion of an object changes, its event series continues.

    The Go controller creates a new event.
    """
    async with rig() as r:
        r.recorder.record(CREATED)
        r.recorder.record(replace(CREATED, regarding=LWS | {"resourceVersion": "8"}))
        await asyncio.sleep(FOLD + 1)
        assert [event["series"]["count"] for event in r.all()] == [2]


async def test_repetition_after_a_long_pause_is_a_new_event() -> None:
    async with rig() as r:
        r.recorder.record(CREATED)
        await asyncio.sleep(SERIES_SECONDS + 1)
        r.recorder.record(CREATED)
        await r.recorder.flush()
        assert len(r.all()) == 2


async def test_flush_writes_pending_repetitions_of_a_series() -> None:
    async with rig() as r:
        r.recorder.record(CREATED)
        await r.recorder.flush()
        for _ in range(4):
            r.recorder.record(CREATED)
        await r.recorder.flush()
        [event] = r.all()
        assert event["series"]["count"] == 5
        await asyncio.sleep(2 * FOLD)
        assert r.methods() == ["POST", "PATCH"]


async def test_series_of_an_expired_event_is_created_again() -> None:
    async with rig() as r:
        r.recorder.record(CREATED)
        await r.recorder.flush()
        r.server.objects.clear()
        r.recorder.record(CREATED)
        await asyncio.sleep(FOLD + 1)
        assert [event["series"]["count"] for event in r.all()] == [2]


@pytest.mark.parametrize(("code", "reason"), [(503, "ServiceUnavailable"), (429, "TooManyRequests")])
async def test_event_is_retried_while_the_server_is_unavailable(code: int, reason: str) -> None:
    async with rig() as r:
        r.server.failures = [ConnectionFailedError("down"), failure(code, reason), ConnectionFailedError("down")]
        r.recorder.record(CREATED)
        await r.recorder.flush()
        assert len(r.all()) == 1


@pytest.mark.parametrize("count", [1, 6])
async def test_unwritable_event_is_dropped_and_the_next_is_written(count: int) -> None:
    failures: list[Response | Exception] = [failure(403, "Forbidden", "the namespace is terminating")]

    async with rig() as r:
        r.server.failures = failures if count == 1 else [ConnectionFailedError("down")] * count
        r.recorder.record(CREATED)
        r.recorder.record(replace(CREATED, note="another"))
        await r.recorder.flush()
        assert [event["note"] for event in r.all()] == ["another"]


async def test_recording_never_waits_and_memory_is_bounded() -> None:
    server = EventsServer()
    recorder = EventRecorder(Client(server), "leaderworkerset", "host", VirtualClock())
    for number in range(SERIES + QUEUE):  # nobody writes
        recorder.record(replace(CREATED, note=str(number)))
    task = asyncio.ensure_future(recorder.run())
    await recorder.flush()
    task.cancel()
    assert len(server.objects) == QUEUE


async def test_busy_namespace_does_not_affect_events_of_another() -> None:
    server = EventsServer()
    recorder = EventRecorder(Client(server), "leaderworkerset", "host", VirtualClock())
    with capture_logs() as lines:
        for number in range(2 * QUEUE):  # nobody writes
            recorder.record(replace(CREATED, note=str(number), regarding=LWS | {"namespace": "busy"}))
        recorder.record(CREATED)
    assert [line["dropped"] for line in lines] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
    task = asyncio.ensure_future(recorder.run())
    await recorder.flush()
    task.cancel()
    written = [event["metadata"]["namespace"] for event in server.objects.values()]
    assert (written.count("busy"), written.index("prod")) == (QUEUE - 1, 1)


async def test_completed_series_are_forgotten() -> None:
    async with rig() as r:
        for number in range(100):
            r.recorder.record(replace(CREATED, note=str(number)))
        await asyncio.sleep(SERIES_SECONDS + 1)
        r.recorder.record(CREATED)
        await r.recorder.flush()
        assert len(r.recorder._series) == 1


async def test_series_continue_up_to_the_limit() -> None:
    async with rig() as r:
        for _ in range(2):
            for number in range(SERIES):
                r.recorder.record(replace(CREATED, note=str(number)))
                await r.recorder.flush()
        assert len(r.all()) == SERIES
        assert len(r.recorder._series) == SERIES
        r.recorder.record(replace(CREATED, note="one more"))
        assert len(r.recorder._series) == SERIES


async def test_names_are_unique_within_a_microsecond() -> None:
    async with rig() as r:
        for number in range(50):
            r.recorder.record(replace(CREATED, note=str(number)))
        await r.recorder.flush()
        assert len(r.all()) == 50


async def test_recorders_with_equal_event_names_lose_no_event() -> None:
    async with rig() as r:
        others = [EventRecorder(Client(r.server), f"other-{number}", "host", VirtualClock()) for number in range(4)]
        tasks = [asyncio.ensure_future(one.run()) for one in others]
        for one in (r.recorder, *others):
            one.record(CREATED)
        for one in (r.recorder, *others):
            await one.flush()
        assert {event["reportingController"] for event in r.all()} == {
            "leaderworkerset",
            *(f"other-{number}" for number in range(4)),
        }
        for task in tasks:
            task.cancel()


async def test_event_with_a_lost_answer_is_written_once() -> None:
    async with rig() as r:
        r.server.loses_answers = 1
        r.recorder.record(CREATED)
        await r.recorder.flush()
        r.recorder.record(CREATED)
        await asyncio.sleep(FOLD + 1)
        assert [event["series"]["count"] for event in r.all()] == [2]


async def test_event_is_dropped_when_no_name_is_available() -> None:
    async with rig() as r:
        r.server.failures = [failure(409, "AlreadyExists")] * NAMES
        r.recorder.record(CREATED)
        r.recorder.record(replace(CREATED, note="another"))
        await r.recorder.flush()
        assert [event["note"] for event in r.all()] == ["another"]


async def test_long_note_is_cut_at_a_character_boundary() -> None:
    async with rig() as r:
        r.recorder.record(replace(CREATED, note="x" + "é" * 1000))
        await r.recorder.flush()
        [event] = r.all()
        assert event["note"] == "x" + "é" * 511


async def test_events_of_cluster_scoped_objects_use_default() -> None:
    async with rig() as r:
        r.recorder.record(replace(CREATED, regarding={"kind": "Node", "name": "n"}))
        await r.recorder.flush()
        assert [event["metadata"]["namespace"] for event in r.all()] == ["default"]


@pytest.mark.slow
async def test_waiting_series_take_little_memory() -> None:
    async with rig() as r:

        async def write(numbers: range) -> None:
            for number in numbers:
                r.recorder.record(replace(CREATED, note=f"note {number}"))
                await r.recorder.flush()
            r.server.objects.clear()
            r.server.requests.clear()

        await write(range(10))
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            await write(range(10, 910))
            after, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert len(r.recorder._series) == 910
        assert (after - before) / 900 < 400


def one_of_many(number: int) -> Event:
    return replace(
        CREATED,
        note=f"Created {number}",
        related={"name": f"lws-{number}"},
        of_many=AggregatedNote("Created {numbers}", number),
    )


async def test_differs_from_upstream_concurrent_events_become_ranges() -> None:
    """Similar events within five seconds are combined into one event, such as `Created 0-2,5-6` (contract 8.3)."""
    async with rig() as r:
        for number in (3, 0, 1, 2, 5, 6):
            r.recorder.record(one_of_many(number))
            await asyncio.sleep(1 / 8)
        await asyncio.sleep(FOLD + 1)
        r.recorder.record(one_of_many(8))
        await r.recorder.flush()
        assert [event["note"] for event in r.all()] == ["Created 3", "Created 0-2,5-6", "Created 8"]
        assert [event.get("related") for event in r.all()] == [{"name": "lws-3"}, None, {"name": "lws-8"}]
        moments = [datetime.fromisoformat(event["eventTime"]) for event in r.all()]
        assert moments[1] - moments[0] == timedelta(seconds=1 / 8)
