"""What waits for a pod, and who waits for room."""

import asyncio

import pytest
from tests.simulation.virtualtime import run

from localkube.apiserver.front.portforward.portlink import INBOX_LIMIT, Inbox

pytestmark = pytest.mark.virtual_time


def test_bytes_come_out_in_order_and_then_the_end() -> None:
    async def scenario() -> list[bytes]:
        inbox = Inbox()
        await inbox.put(b"one")
        await inbox.put(b"two")
        inbox.end()
        return [await inbox.get() for _ in range(4)]

    assert run(scenario()) == [b"one", b"two", b"", b""]


async def test_whoever_gets_waits_for_bytes() -> None:
    inbox = Inbox()
    getting = asyncio.create_task(inbox.get())
    await asyncio.sleep(1)
    assert not getting.done()
    await inbox.put(b"late")
    assert await getting == b"late"


async def test_whoever_puts_waits_for_room() -> None:
    inbox = Inbox()
    await inbox.put(bytes(INBOX_LIMIT))
    assert inbox.is_full
    putting = asyncio.create_task(inbox.put(b"more"))
    await asyncio.sleep(1)
    assert not putting.done()
    await inbox.get()
    await putting
    assert await inbox.get() == b"more"


async def test_a_closed_inbox_takes_everything_and_gives_nothing() -> None:
    inbox = Inbox()
    await inbox.put(bytes(INBOX_LIMIT))
    putting = asyncio.create_task(inbox.put(b"more"))
    await asyncio.sleep(1)
    inbox.close()
    await putting
    await inbox.put(bytes(2 * INBOX_LIMIT))
    assert not inbox.is_full
    assert await inbox.get() == b""
