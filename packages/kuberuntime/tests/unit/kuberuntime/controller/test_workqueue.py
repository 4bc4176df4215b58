"""Tests that the work queue neither loses nor duplicates a key, nor processes a key twice concurrently."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testkit.virtualtime import run

from kuberuntime import timeouts
from kuberuntime.backoff import Backoff
from kuberuntime.controller.workqueue import WorkQueue

pytestmark = pytest.mark.virtual_time


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_keys_are_returned_once_in_order() -> None:
    queue = WorkQueue[str]()
    for key in "abcab":
        queue.add(key)
    queue.shut_down()
    assert [await queue.get() for _ in range(4)] == ["a", "b", "c", None]


async def test_key_added_during_its_work_is_returned_afterwards() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    queue.add("b")
    assert await queue.get() == "b"
    queue.done("a")
    assert await queue.get() == "a"
    assert len(queue) == 0


async def test_earliest_of_several_delays_is_used() -> None:
    queue = WorkQueue[str]()
    times = []
    for delays in ((10, 3), (3, 10)):
        started = now()
        for delay in delays:
            queue.add_after("a", delay)
        await queue.get()
        queue.done("a")
        times.append(now() - started)
    assert times == [3, 3]


async def test_add_does_not_wait_for_a_delay() -> None:
    queue = WorkQueue[str]()
    queue.add_after("a", 10)
    queue.add("a")
    await queue.get()
    assert now() == 0


async def test_additions_during_a_rest_return_the_key_once() -> None:
    queue = WorkQueue[str]()
    queue.delay_additions("a", 10)
    for _ in range(3):
        queue.add("a")
        await asyncio.sleep(1)
    await queue.get()
    assert (now(), len(queue)) == (10, 0)


async def test_rest_without_additions_returns_no_key() -> None:
    queue = WorkQueue[str]()
    queue.delay_additions("a", 10)
    await asyncio.sleep(11)
    queue.add("b")
    assert (await queue.get(), len(queue)) == ("b", 0)


async def test_timer_ends_during_a_rest() -> None:
    queue = WorkQueue[str]()
    queue.delay_additions("a", 10)
    queue.add_after("a", 3)
    await queue.get()
    assert now() == 3


async def test_failures_back_off_until_the_key_is_forgotten() -> None:
    queue = WorkQueue[str](Backoff(base=0.005, limit=1000))
    assert [queue.add_rate_limited("a") for _ in range(4)] == [0.005, 0.01, 0.02, 0.04]
    assert queue.add_rate_limited("b") == 0.005
    queue.forget("a")
    assert queue.add_rate_limited("a") == 0.005
    assert [queue.add_rate_limited("a") for _ in range(30)][-1] == 1000


async def test_shut_down_queue_accepts_nothing_and_releases_workers() -> None:
    queue = WorkQueue[str]()
    queue.add_after("late", 5)
    workers = [asyncio.ensure_future(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    queue.shut_down()
    queue.shut_down()
    queue.add("a")
    queue.add_after("a", 1)
    assert (await asyncio.gather(*workers)) == [None, None, None]


async def test_cancelled_worker_takes_no_key() -> None:
    queue = WorkQueue[str]()
    waiting = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    waiting.cancel()
    assert (await queue.get()) == "a"


KEYS = st.sampled_from("abc")
ADDS = st.lists(st.tuples(st.floats(0, 5), KEYS, st.sampled_from(["add", "after", "limited"])), max_size=40)


@settings(max_examples=100, deadline=None)
@given(ADDS, st.integers(1, 4), st.lists(st.floats(0, 2), min_size=1, max_size=5))
@pytest.mark.slow
def test_every_add_is_processed_and_no_key_has_two_workers(
    adds: list[tuple[float, str, str]], workers: int, durations: list[float]
) -> None:
    async def scenario() -> None:
        queue = WorkQueue[str]()
        busy: set[str] = set()
        last_start: dict[str, float] = {}
        last_add: dict[str, float] = {}

        async def work() -> None:
            while (key := await queue.get()) is not None:
                assert key not in busy
                busy.add(key)
                last_start[key] = now()
                await asyncio.sleep(durations[len(last_start) % len(durations)])
                busy.remove(key)
                queue.done(key)

        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(work())
            for pause, key, how in adds:
                await asyncio.sleep(pause)
                last_add[key] = now()
                match how:
                    case "add":
                        queue.add(key)
                    case "after":
                        queue.add_after(key, 0.5)
                    case _:
                        queue.add_rate_limited(key)
            await asyncio.sleep(10_000)
            assert len(queue) == 0
            queue.shut_down()
        assert last_start.keys() == last_add.keys()
        assert all(last_start[key] >= last_add[key] for key in last_add)

    run(scenario())


async def test_busy_key_does_not_starve_others() -> None:
    queue = WorkQueue[str]()
    for key in "abc":
        queue.add(key)
    served: list[str] = []
    while len(served) < 6 and (next_key := await queue.get()):
        served.append(next_key)
        queue.add(next_key)
        queue.done(next_key)
    assert served == ["a", "b", "c", "a", "b", "c"]


async def test_tenants_take_turns() -> None:
    queue = WorkQueue[str](tenant=lambda key: key[0])
    for key in ("a1", "a2", "a3", "b1", "c1", "b2"):
        queue.add(key)
    queue.shut_down()
    assert [await queue.get() for _ in range(7)] == ["a1", "b1", "c1", "a2", "b2", "a3", None]


async def test_tenant_is_limited_to_its_share_of_the_workers() -> None:
    queue = WorkQueue[str](tenant=lambda key: key[0], share=2)
    for key in ("a1", "a2", "a3"):
        queue.add(key)
    assert [await queue.get(), await queue.get()] == ["a1", "a2"]
    spare = asyncio.ensure_future(queue.get())
    await asyncio.sleep(1)
    assert not spare.done()
    queue.add("b1")
    assert await spare == "b1"
    spare = asyncio.ensure_future(queue.get())
    queue.shut_down()
    await asyncio.sleep(1)
    assert not spare.done()
    queue.done("a1")
    assert await spare == "a3"
    assert await queue.get() is None


async def test_key_wakes_a_second_worker_when_the_first_is_cancelled() -> None:
    queue = WorkQueue[str]()
    first, second = (asyncio.create_task(queue.get()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    queue.add("a")
    assert await second == "a"
    assert (await asyncio.gather(first, return_exceptions=True))[0].__class__ is asyncio.CancelledError


async def test_workers_end_when_shares_hold_back_the_last_keys() -> None:
    queue, worked = WorkQueue[str](tenant=lambda key: key[0], share=1), list[str]()

    async def work() -> None:
        while (key := await queue.get()) is not None:
            await asyncio.sleep(1)
            worked.append(key)
            queue.done(key)

    async with timeouts.within(60), asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(work())
        await asyncio.sleep(1)
        for key in ("a1", "a2", "a3", "b1"):
            queue.add(key)
        queue.shut_down()
    assert sorted(worked) == ["a1", "a2", "a3", "b1"]


async def test_waiting_keys_are_discarded_while_busy_ones_finish() -> None:
    queue = WorkQueue[str]()
    for key in "abc":
        queue.add(key)
    queue.add_after("later", 10.0)
    assert await queue.get() == "a"
    queue.discard()
    queue.add("d")
    assert len(queue) == 0
    assert await queue.get() is None
    assert await queue.get() is None
    idle = asyncio.ensure_future(queue.wait_idle())
    await asyncio.sleep(1)
    assert not idle.done()
    queue.done("a")
    await idle
    queue.discard()
    assert await queue.get() is None
