"""Tests the kubelet side of the connection with a simulated launcher."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from localkube.kubelet.processes.runner import ExhaustedError, StartError
from localkube.kubelet.sandbox.launcher.launcherconnection import LauncherConnection, ReceivedMessage
from localkube.kubelet.sandbox.launcherclient import LauncherClient, LauncherEndedError


@asynccontextmanager
async def opened() -> AsyncIterator[tuple[LauncherClient, LauncherConnection, list[Any]]]:
    ours, theirs = (LauncherConnection(sock) for sock in socket.socketpair())
    events: list[Any] = []
    channel = LauncherClient(ours, events.append, lambda: events.append("closed"))
    try:
        yield channel, theirs, events
    finally:
        channel.close()
        theirs.close()


async def receive(launcher: LauncherConnection) -> tuple[dict[str, Any], list[int]]:
    received = await asyncio.to_thread(launcher.receive)
    return received[0].message, received[0].fds


async def test_answers_match_requests_in_any_order() -> None:
    async with opened() as (channel, launcher, _):
        first = asyncio.create_task(channel.request("one", {}))
        message, _fds = await receive(launcher)
        second = asyncio.create_task(channel.request("two", {}))
        other, _fds = await receive(launcher)
        launcher.send({"reply": other["id"], "n": 2})
        launcher.send({"reply": message["id"], "n": 1})
        assert [(await task).message["n"] for task in (first, second)] == [1, 2]


async def test_arrived_sockets_are_received_in_one_loop_turn() -> None:
    async with opened() as (channel, launcher, _):
        asking = [asyncio.create_task(channel.request("socket", {})) for _ in range(30)]
        await asyncio.sleep(0)
        waiting = [received.message["id"] for received in launcher.receive()]
        for number in waiting:
            launcher.send({"reply": number}, (launcher.fileno(),))
        for _turn in range(3):
            await asyncio.sleep(0)
        assert all(task.done() for task in asking)
        for task in asking:
            os.close(task.result().fds[0])


async def test_refusal_is_a_start_error() -> None:
    async with opened() as (channel, launcher, _):
        asking = asyncio.create_task(channel.request("start", {}))
        message, _fds = await receive(launcher)
        launcher.send({"reply": message["id"], "error": "mount /x: no"})
        with pytest.raises(StartError, match="mount /x: no"):
            await asking


async def test_event_follows_the_awaited_answer() -> None:
    async with opened() as (channel, launcher, events):

        async def ask() -> None:
            await channel.request("start", {})
            events.append("answered")

        asking = asyncio.create_task(ask())
        message, _fds = await receive(launcher)
        launcher.send({"reply": message["id"]})
        launcher.send({"exit": "c", "code": 0, "signal": 0})
        launcher.close()
        await asking
        with pytest.raises(LauncherEndedError):
            await channel.request("after the event", {})
        events.remove("closed")
        assert events == ["answered", {"exit": "c", "code": 0, "signal": 0}]


async def test_launcher_exit_fails_current_and_later_requests() -> None:
    async with opened() as (channel, launcher, events):
        asking = asyncio.create_task(channel.request("start", {}))
        await receive(launcher)
        launcher.close()
        with pytest.raises(LauncherEndedError):
            await asking
        with pytest.raises(LauncherEndedError, match="has exited"):
            await channel.request("start", {})
        assert events == ["closed"]


async def test_long_request_waits_with_its_descriptor() -> None:
    async with opened() as (channel, launcher, _):
        reading, writing = os.pipe()
        text = "x" * (4 << 20)
        asking = [
            asyncio.create_task(channel.request("start", {"text": text})),
            asyncio.create_task(channel.request("start", {}, (writing,))),
        ]
        await asyncio.sleep(0)
        os.close(writing)  # it was duplicated
        received: list[ReceivedMessage] = []
        while len(received) < 2:
            received += await asyncio.to_thread(launcher.receive)
        assert received[0].message["text"] == text
        assert len(received[1].fds) == 1
        for item in received:
            launcher.send({"reply": item.message["id"]})
        await asyncio.gather(*asking)
        for fd in (reading, *received[1].fds):
            os.close(fd)


async def test_descriptors_of_an_abandoned_answer_are_closed() -> None:
    async with opened() as (channel, launcher, _):
        reading, writing = os.pipe()
        asking = asyncio.create_task(channel.request("socket", {}))
        message, _fds = await receive(launcher)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        launcher.send({"reply": message["id"]}, (writing,))
        os.close(writing)
        assert await asyncio.to_thread(os.read, reading, 1) == b""
        os.close(reading)


async def test_exhausted_resource_may_be_requested_again() -> None:
    async with opened() as (channel, launcher, _):
        asking = asyncio.create_task(channel.request("start", {}))
        message, _fds = await receive(launcher)
        launcher.send({"reply": message["id"], "error": "too many open files", "exhausted": True})
        with pytest.raises(ExhaustedError, match="too many open files"):
            await asking
