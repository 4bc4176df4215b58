"""Tests informers with invalid objects, failing subscribers, and kinds that are not served."""

import asyncio

import msgspec
import pytest
from structlog.testing import capture_logs
from testkit.fakes import SmallServer, failure
from tests.unit.kuberuntime.cache.informing import names, running, settle

from kuberuntime.cache.informer import MOST_NAMED, Change, Informer
from kuberuntime.cache.projection import Projection
from kuberuntime.client.client import Client
from kuberuntime.client.requests import Selection
from kuberuntime.client.transport import Response
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS

pytestmark = pytest.mark.virtual_time


async def test_malformed_event_line_only_ends_the_stream() -> None:
    server = SmallServer()
    async with running(server) as informer:
        server.babble(b"<html>\n")
        server.put("a")
        await settle()
        assert names(informer) == {"a"}


@pytest.mark.parametrize("streaming", [True, False], ids=["streaming lists", "pages"])
@pytest.mark.parametrize(
    "hostile", [b'"\\ud800"', b'{"a":' * 200_000 + b"1" + b"}" * 200_000], ids=["surrogate", "deep"]
)
async def test_undecodable_object_is_absent_and_others_are_followed(streaming: bool, hostile: bytes) -> None:
    server = SmallServer(streaming_lists=streaming)
    server.put("a")
    server.put("listed", data=msgspec.Raw(hostile))
    async with running(server) as informer:
        ignored: list[str] = []
        informer.on_ignored(lambda obj: ignored.append(meta.name(obj)))
        assert names(informer) == {"a"}
        changes: list[Change] = []
        informer.subscribe(changes.append)
        server.put("a", data=msgspec.Raw(hostile))
        server.put("b")
        await settle()
        assert names(informer) == {"b"}
        assert informer.version == str(server.version)
        server.put("a", data=1)
        server.put("listed", data=msgspec.Raw(hostile))
        await settle()
        assert names(informer) == {"a", "b"}
        assert [(meta.name(one.object), one.new is None) for one in changes] == [
            ("a", False),
            ("a", True),
            ("b", False),
            ("a", False),
        ]
        assert (ignored, informer.ignored) == (["a"], 3)
        assert len(server.requests) <= 3


async def test_object_that_fails_a_subscriber_is_absent_for_all() -> None:
    def fail(change: Change) -> None:
        if meta.name(change.object) == "bad":
            raise RecursionError

    server = SmallServer()
    server.put("bad")
    async with running(server) as informer:
        known: set[str] = set()

        def follow(change: Change) -> None:
            (known.discard if change.new is None else known.add)(meta.name(change.object))

        informer.subscribe(follow)
        assert known == {"bad"}
        informer.subscribe(fail)
        assert (known, names(informer)) == (set(), set())
        server.put("a")
        server.put("bad", spec={})
        await settle()
        assert known == names(informer) == {"a"}


async def test_object_that_fails_an_index_is_absent() -> None:
    server = SmallServer()
    server.put("bad")
    server.put("a", spec={"nodeName": "n"})
    informer = Informer(Client(server), PODS, indexes={"node": lambda pod: (pod["spec"]["nodeName"],)})
    async with asyncio.TaskGroup() as group:
        task = group.create_task(informer.run())
        await informer.wait_synced()
        server.put("a", spec={})
        server.put("b", spec={"nodeName": "n"})
        await settle()
        assert names(informer) == {"b"}
        assert [meta.name(pod) for pod in informer.store.by_index("node", "n")] == ["b"]
        task.cancel()


async def test_ignored_object_logs_one_line_and_a_debug_traceback() -> None:
    server = SmallServer()
    async with running(server):
        with capture_logs() as lines:
            server.put("bad", data=msgspec.Raw(b'"\\ud800"'))
            server.put("bad", data=msgspec.Raw(b'"\\udfff"'))
            await settle()
    assert [(line["log_level"], line["key"], "exc_info" in line) for line in lines] == [
        ("warning", "default/bad", False),
        ("debug", "default/bad", True),
    ]


@pytest.mark.slow
async def test_remembered_names_of_ignored_objects_are_bounded() -> None:
    server = SmallServer()
    async with running(server) as informer:
        named: list[JSONObject] = []
        informer.on_ignored(named.append)
        for number in range(MOST_NAMED + 5):
            server.put(f"bad-{number}", data=msgspec.Raw(b'"\\ud800"'))
        await settle()
        assert (len(named), informer.ignored) == (MOST_NAMED, MOST_NAMED + 5)


@pytest.mark.parametrize("streaming", [True, False], ids=["streaming lists", "pages"])
async def test_fields_dropped_by_a_projection_are_not_stored(streaming: bool) -> None:
    server = SmallServer(streaming_lists=streaming)
    server.put("a", spec={"large": "x"}, status={"phase": "Running"})
    informer = Informer(Client(server), PODS, keep=lambda _: Projection("status.phase"))
    changes: list[Change] = []
    informer.subscribe(changes.append)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(informer.run())
        await informer.wait_synced()
        server.put("a", status={"phase": "Failed"})
        server.remove("a")
        await settle()
        task.cancel()
    assert [meta.status(change.object).get("phase") for change in changes] == ["Running", "Failed", "Failed"]
    assert all("spec" not in change.object for change in changes)
    assert changes[-1].new is None
    assert informer.version == str(server.version)


async def test_projection_may_differ_between_objects() -> None:
    server = SmallServer()
    server.put("a", spec={"x": 1})
    server.put("b", spec={"x": 1})
    informer = Informer(
        Client(server), PODS, keep=lambda obj: Projection("spec") if meta.name(obj) == "a" else Projection()
    )
    async with asyncio.TaskGroup() as group:
        task = group.create_task(informer.run())
        await informer.wait_synced()
        task.cancel()
    assert {meta.name(obj): meta.spec(obj) for obj in informer.store.list()} == {"a": {"x": 1}, "b": {}}


async def test_optional_kind_is_empty_until_it_is_served() -> None:
    """When the CRD of a kind is deleted, the cached objects of the kind are removed."""
    server = SmallServer()
    server.put("a")
    missing = failure(404, "NotFound", "the server could not find the requested resource")
    server.refuse = lambda _: missing
    informer = Informer(Client(server), PODS, optional=True)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(informer.run())
        await informer.wait_synced()
        assert names(informer) == set()
        served = [informer.is_served]
        server.refuse = lambda _: None
        await asyncio.sleep(10)
        assert names(informer) == {"a"}
        served.append(informer.is_served)
        server.refuse = lambda _: missing
        server.cut()
        await asyncio.sleep(10)
        assert names(informer) == set()
        served.append(informer.is_served)
        assert served == [False, True, False]
        task.cancel()


async def test_optional_kind_is_requested_again_when_it_is_served() -> None:
    """No request is sent while the kind is not served. Afterwards, its objects appear within seconds."""
    server, served = SmallServer(), asyncio.Event()
    server.put("a")
    asked: list[object] = []

    def refuse(request: object) -> Response | None:
        asked.append(request)
        return None if served.is_set() else failure(404, "NotFound", "not served")

    server.refuse = refuse
    informer = Informer(Client(server), PODS, optional=True, served=served)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(informer.run())
        await informer.wait_synced()
        await asyncio.sleep(200)
        assert (len(asked), names(informer)) == (1, set())
        served.set()
        await asyncio.sleep(1)
        assert names(informer) == {"a"}
        task.cancel()


async def test_informer_waits_for_a_required_kind() -> None:
    server = SmallServer()
    server.refuse = lambda _: failure(404, "NotFound", "not served")
    informer = Informer(Client(server), PODS)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(informer.run())
        await asyncio.sleep(60)
        assert not informer._synced.is_set()
        task.cancel()


async def test_equal_texts_of_two_caches_are_shared() -> None:
    """Caches share equal values, such as labels, within a kind, and also the values of deleted objects."""
    server = SmallServer()
    server.put("a")
    projection = Projection("metadata.labels")
    async with asyncio.TaskGroup() as group:
        caches = [
            Informer(Client(server), Selection(PODS, label_selector="app=x"), keep=lambda _: projection)
            for _ in range(2)
        ]
        tasks = [group.create_task(one.run()) for one in caches]
        for one in caches:
            await one.wait_synced()
        first, second = (meta.name(one.store.list()[0]) for one in caches)
        assert first is second
        for task in tasks:
            task.cancel()
