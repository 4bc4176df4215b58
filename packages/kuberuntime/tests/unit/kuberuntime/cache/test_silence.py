"""Tests watches whose connections are silent or close immediately. Each relists, and logs one line."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs
from testkit.fakes import SmallServer
from tests.unit.kuberuntime.cache.informing import names, running, settle

from kuberuntime.cache.informer import Informer
from kuberuntime.cache.reflector import SILENCE
from kuberuntime.cache.watch import EMPTY_STREAMS
from kuberuntime.client.client import Client
from kuberuntime.objects.resources import EVENTS

pytestmark = pytest.mark.virtual_time


def streamed(server: SmallServer, *, initial: bool) -> int:
    """Return the number of watches that started with a list, or that resumed at a version."""
    watches = [dict(request.query) for request in server.requests if ("watch", "true") in request.query]
    return sum(("sendInitialEvents" in query) == initial for query in watches)


def warnings(logs: Sequence[Mapping[str, Any]]) -> list[str]:
    return [str(line["event"]) for line in logs if line["log_level"] == "warning"]


@pytest.mark.parametrize("streaming", [True, False], ids=["streaming lists", "pages"])
async def test_silent_stream_is_replaced_within_75_seconds(streaming: bool) -> None:
    server = SmallServer(streaming_lists=streaming)
    with capture_logs() as logs:
        async with running(server) as informer:
            server.put("a")
            await settle()
            server.mute()
            server.put("b")
            await asyncio.sleep(SILENCE - 2)
            assert names(informer) == {"a"}
            await asyncio.sleep(2)
            assert names(informer) == {"a", "b"}
            assert not informer.watch_state.is_stalled
            await asyncio.sleep(3600)
    assert warnings(logs) == ["watch did not send events in time, reconnecting"]


async def test_server_that_stays_silent_is_logged_once() -> None:
    server = SmallServer()
    with capture_logs() as logs:
        async with running(server) as informer:
            server.put("a")
            await settle()
            server.withhold = True
            server.mute()
            await asyncio.sleep(4 * SILENCE + 10)
            states = [informer.watch_state.is_stalled]
            server.withhold = False
            await asyncio.sleep(SILENCE)
            states.append(informer.watch_state.is_stalled)
    assert states == [True, False]
    assert len(warnings(logs)) == 1


async def test_kind_without_bookmarks_is_watched_again_quietly() -> None:
    """A server does not send bookmarks for a kind until the kind first changes after the server's start."""
    server = SmallServer(bookmarks=0)
    with capture_logs() as logs:
        async with running(server) as informer:
            await asyncio.sleep(10 * SILENCE)
            server.put("late")
            await settle()
            assert names(informer) == {"late"}
    assert (streamed(server, initial=True), warnings(logs)) == (1, [])


async def test_events_may_be_silent_after_an_event() -> None:
    """kube-apiserver serves events without a watch cache, and therefore does not send regular bookmarks."""
    server = SmallServer(bookmarks=0)
    with capture_logs() as logs:
        informer = Informer(Client(server), EVENTS)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(informer.run())
            await informer.wait_synced()
            server.put("first")
            await asyncio.sleep(10 * SILENCE)
            server.put("second")
            await settle()
            assert names(informer) == {"first", "second"}
            task.cancel()
    assert (streamed(server, initial=True), warnings(logs)) == (1, [])


async def test_last_received_is_the_time_of_the_last_bookmark() -> None:
    server = SmallServer()
    async with running(server) as informer:
        opened = informer.last_received
        assert opened is not None
        await asyncio.sleep(61)
        assert informer.last_received == pytest.approx(opened + 60)
        server.mute()
        await asyncio.sleep(SILENCE - 10)
        assert informer.last_received == pytest.approx(opened + 60)


async def test_relist_at_the_end_of_a_silence_is_answered() -> None:
    server = SmallServer()
    async with running(server) as informer:
        server.put("a")
        await settle()
        received = informer.last_received
        assert received is not None
        server.mute()
        done = asyncio.Event()
        asyncio.get_running_loop().call_at(received + SILENCE, lambda: informer.relist(done.set))
        await asyncio.wait_for(done.wait(), SILENCE + 1)


@pytest.mark.parametrize("streaming", [True, False], ids=["streaming lists", "pages"])
async def test_watches_that_close_immediately_cause_a_list(streaming: bool) -> None:
    server = SmallServer(streaming_lists=streaming)
    with capture_logs() as logs:
        async with running(server) as informer:
            server.closes_watches = True
            server.cut()
            await asyncio.sleep(3)
            server.put("a")
            await asyncio.sleep(600)
            assert names(informer) == {"a"}
            assert EMPTY_STREAMS < len(server.requests) < 60
            server.closes_watches = False
            server.put("b")
            await asyncio.sleep(31)
            assert names(informer) == {"a", "b"}
    assert warnings(logs) == ["watch closed repeatedly without events, listing the objects"]
