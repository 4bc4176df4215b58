"""Tests that the informer's store converges to the server's objects despite connection failures."""

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testkit.fakes import SmallServer, failure
from testkit.virtualtime import run
from tests.unit.kuberuntime.cache.informing import names, running, settle

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.cache.reflector import GRACE, TIMEOUT
from kuberuntime.client.client import Client
from kuberuntime.client.requests import Selection
from kuberuntime.client.transport import Request, Response
from kuberuntime.errors import ForbiddenError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import PODS

pytestmark = pytest.mark.virtual_time

A = ObjectKey("default", "a")


@pytest.mark.parametrize("streaming", [True, False], ids=["streaming lists", "pages"])
async def test_store_is_filled_and_follows_changes(streaming: bool) -> None:
    server = SmallServer(streaming_lists=streaming)
    server.put("a")
    server.put("b")
    async with running(server) as informer:
        assert names(informer) == {"a", "b"}
        server.put("c")
        server.remove("a")
        await settle()
        assert names(informer) == {"b", "c"}
        assert informer.version == str(server.version)


async def test_unsupported_streaming_list_is_requested_once() -> None:
    server = SmallServer(streaming_lists=False)
    async with running(server):
        server.expire()
        server.cut()
        await settle()
    streamed = [request for request in server.requests if ("sendInitialEvents", "true") in request.query]
    assert len(streamed) == 1


async def test_selectors_are_sent_with_every_request() -> None:
    server = SmallServer(streaming_lists=False)
    async with running(server):
        await settle()
    assert len(server.requests) == 3
    assert all(("labelSelector", "app=x") in request.query for request in server.requests)


async def test_cut_stream_continues_at_its_last_version() -> None:
    server = SmallServer()
    server.put("a")
    async with running(server) as informer:
        changes: list[Change] = []
        informer.subscribe(changes.append)
        server.cut()
        server.put("b")
        await settle()
        assert [(change.old, meta.name(change.object)) for change in changes] == [(None, "a"), (None, "b")]


async def test_changes_during_an_outage_are_reported_afterwards() -> None:
    server = SmallServer()
    server.put("a")
    server.put("b")
    async with running(server) as informer:
        changes: list[Change] = []
        informer.subscribe(changes.append)
        changes.clear()
        server.is_down = True
        server.cut()
        server.remove("a")
        server.put("b", spec={"changed": True})
        server.expire()
        await asyncio.sleep(120)
        assert names(informer) == {"a", "b"}
        server.is_down = False
        await asyncio.sleep(31)
        assert [(meta.name(change.object), change.new is None) for change in changes] == [("a", True), ("b", False)]


async def test_idle_watch_costs_one_request_per_timeout() -> None:
    server = SmallServer()
    async with running(server):
        await asyncio.sleep(3600)
    assert len(server.requests) <= 3600 / TIMEOUT + 1


def forbids(verb: str) -> Callable[[Request], Response | None]:
    """Return a function that rejects either list or watch requests with the status 403."""

    def refuse(request: Request) -> Response | None:
        is_watch = ("watch", "true") in request.query
        return failure(403, "Forbidden", f"cannot {verb}") if is_watch == (verb == "watch") else None

    return refuse


@pytest.mark.parametrize(("verb", "streaming"), [("list", False), ("watch", False), ("watch", True)])
async def test_forbidden_watch_fails_at_once_if_requested(verb: str, streaming: bool) -> None:
    server = SmallServer(streaming_lists=streaming)
    server.refuse = forbids(verb)
    informer = Informer(Client(server), Selection(PODS))
    with pytest.raises(ForbiddenError, match=f"cannot {verb}"):
        await informer.run(gives_up=True)


async def test_refusal_after_the_first_stream_is_retried() -> None:
    """An API server may respond with the status 403 until it has loaded its roles after a start."""
    server = SmallServer()
    informer = Informer(Client(server), Selection(PODS))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(informer.run(gives_up=True))
        await informer.wait_synced()
        server.refuse = forbids("watch")
        server.cut()
        await settle()
        server.refuse = lambda _: None
        server.put("late")
        await asyncio.sleep(60)
        assert names(informer) == {"late"}
        task.cancel()


@pytest.mark.parametrize(("code", "reason"), [(410, "Expired"), (403, "Forbidden"), (500, "InternalError")])
async def test_failing_server_is_not_retried_in_a_hot_loop(code: int, reason: str) -> None:
    server = SmallServer()
    server.refuse = lambda _: failure(code, reason)
    informer = Informer(Client(server), PODS)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(informer.run())
        await asyncio.sleep(600)
        task.cancel()
    assert 15 < len(server.requests) < 80


async def test_expired_versions_are_not_retried_in_a_hot_loop() -> None:
    def refuse_watches(request: Request) -> Response | None:
        return failure(410, "Expired") if ("watch", "true") in request.query else None

    server = SmallServer(streaming_lists=False)
    server.refuse = refuse_watches
    async with running(server):
        await asyncio.sleep(60)
    assert len(server.requests) < 60 * 20


async def test_relist_delivers_changes_that_a_mute_stream_withheld() -> None:
    server = SmallServer()
    async with running(server) as informer:
        done = asyncio.Event()
        busy = [informer.is_relisting]
        server.mute()
        server.put("b")
        informer.relist(done.set)
        busy.append(informer.is_relisting)
        await asyncio.wait_for(done.wait(), 1)
        busy.append(informer.is_relisting)
        assert busy == [False, True, False]
        assert names(informer) == {"b"}
        server.put("c")
        await settle()
        assert names(informer) == {"b", "c"}


async def test_two_concurrent_relists_are_both_answered() -> None:
    server = SmallServer()
    async with running(server) as informer:
        answered: list[int] = []
        informer.relist(lambda: answered.append(1))
        informer.relist(lambda: answered.append(2))
        await settle()
        assert answered == [1, 2]


async def test_late_subscriber_receives_existing_objects() -> None:
    server = SmallServer()
    server.put("a")
    async with running(server) as informer:
        changes: list[Change] = []
        informer.subscribe(changes.append)
        assert [meta.name(change.object) for change in changes] == ["a"]


async def test_progress_is_reported_after_the_store_is_updated() -> None:
    server = SmallServer()
    async with running(server) as informer:
        seen: list[tuple[str, bool]] = []
        informer.on_progress(lambda: seen.append((informer.version, informer.store.get(A) is not None)))
        server.put("a")
        server.bookmark()
        await settle()
        assert seen == [("1", True), ("1", True)]


STEPS = st.sampled_from(
    ["put a", "put b", "put c", "remove", "cut", "mute", "expire", "down", "up", "bookmark", "wait", "wait", "relist"]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(STEPS, max_size=25), st.booleans())
def test_store_and_changes_converge_to_the_server_state(steps: list[str], streaming: bool) -> None:
    async def scenario() -> None:
        server = SmallServer(streaming_lists=streaming)
        replayed: dict[ObjectKey, str] = {}

        def replay(change: Change) -> None:
            if change.new is None:
                del replayed[meta.key(change.object)]
            else:
                replayed[meta.key(change.new)] = meta.resource_version(change.new)

        async with running(server) as informer:
            informer.subscribe(replay)
            for number, step in enumerate(steps):
                await perform(server, informer, step, number)
            server.is_down = False
            await asyncio.sleep(TIMEOUT + GRACE + 31)
            truth = {meta.key(obj): meta.resource_version(obj) for obj in server.objects.values()}
            assert {meta.key(obj): meta.resource_version(obj) for obj in informer.store.list()} == truth
            assert replayed == truth

    run(scenario())


async def perform(server: SmallServer, informer: Informer, step: str, number: int) -> None:
    match step.split():
        case ["put", name]:
            server.put(name, spec={"step": number})
        case ["remove"] if server.objects:
            server.remove(min(server.objects))
        case ["cut"]:
            server.cut()
        case ["mute"]:
            server.mute()
        case ["expire"]:
            server.expire()
        case ["down" | "up"]:
            server.is_down = step == "down"
        case ["bookmark"]:
            server.bookmark()
        case ["relist"]:
            informer.relist(lambda: None)
        case ["wait"]:
            await asyncio.sleep(0.05)
