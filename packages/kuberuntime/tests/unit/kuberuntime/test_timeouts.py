"""Tests that time limits behave identically in all tasks and Python versions."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
from testkit.virtualtime import run

from kuberuntime import timeouts

pytestmark = pytest.mark.virtual_time


async def never() -> None:
    await asyncio.Event().wait()


async def expire() -> str:
    """Return the outcome of an endless operation with a time limit of 3 s."""
    try:
        async with timeouts.within(3):
            await never()
    except TimeoutError:
        return f"TimeoutError at {asyncio.get_running_loop().time():g} s"
    return "nothing"


async def in_a_task_that_is_being_cancelled(clean_up: Callable[[], Awaitable[str]]) -> str:
    """Return the result of `clean_up` in a task that was already cancelled."""
    ended = ""

    async def work() -> None:
        nonlocal ended
        try:
            await never()
        finally:
            ended = await clean_up()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return ended


def test_expired_limit_raises_timeout_error() -> None:
    assert run(expire()) == "TimeoutError at 3 s"


def test_limit_expires_in_a_task_that_is_being_cancelled() -> None:
    """Before Python 3.11.3, `asyncio.timeout` raises CancelledError in this case, which aborts the cleanup."""
    assert run(in_a_task_that_is_being_cancelled(expire)) == "TimeoutError at 3 s"


async def test_inner_limit_expires_before_an_outer_limit() -> None:
    async with timeouts.within(10):
        assert await expire() == "TimeoutError at 3 s"
        await asyncio.sleep(1)


async def test_external_cancellation_within_a_limit_is_raised() -> None:
    task = asyncio.create_task(expire())
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_cancellation_at_the_moment_of_expiry_is_not_lost() -> None:
    task = asyncio.create_task(expire())
    asyncio.get_running_loop().call_later(3, task.cancel)
    with pytest.raises(asyncio.CancelledError):
        await task


def test_unlimited_limit_can_be_rescheduled() -> None:
    async def scenario() -> None:
        async with timeouts.within(None) as limit:
            await asyncio.sleep(1_000_000)
            limit.reschedule(1_000_005)
            await never()

    with pytest.raises(TimeoutError):
        run(scenario())
