"""Tests a lock that tenants acquire in turn. An item takes one second of virtual time."""

import asyncio

import pytest

from kuberuntime.fairqueue import FairLock

pytestmark = pytest.mark.virtual_time

ITEM = 1.0


async def work(lock: FairLock, tenant: str, times: dict[str, list[float]]) -> None:
    """Hold the lock for one item, and record when the item is complete."""
    async with lock.acquire(tenant):
        await asyncio.sleep(ITEM)
    times.setdefault(tenant, []).append(asyncio.get_running_loop().time())


@pytest.mark.parametrize(("noisy", "waits"), [(["noisy"], 0.5), (["noisy", "loud"], 2.5)])
async def test_item_waits_for_one_item_of_each_other_tenant(noisy: list[str], waits: float) -> None:
    """Forty items of each tenant are waiting, and others follow. The current item needs half a second more."""
    lock, times = FairLock(), dict[str, list[float]]()
    began = asyncio.get_running_loop().time()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(40):
            for tenant in noisy:
                tasks.create_task(work(lock, tenant, times))
        await asyncio.sleep(2.5 * ITEM)
        tasks.create_task(work(lock, "quiet", times))
        for tenant in noisy:
            tasks.create_task(work(lock, tenant, times))
    (quiet,) = times["quiet"]
    assert quiet - began - 2.5 * ITEM == waits + ITEM
    assert [len(times[tenant]) for tenant in noisy] == [41] * len(noisy)


async def test_cancelled_item_does_not_keep_the_lock() -> None:
    lock, times = FairLock(), dict[str, list[float]]()
    first = asyncio.create_task(work(lock, "a", times))
    second = asyncio.create_task(work(lock, "b", times))
    await asyncio.sleep(ITEM / 2)
    second.cancel()
    third = asyncio.create_task(work(lock, "c", times))
    await asyncio.sleep(0)
    first.cancel()
    await third
    assert list(times) == ["c"]
    async with lock.acquire("d"):
        pass


async def test_item_cancelled_in_its_turn_passes_the_turn_on() -> None:
    lock, times = FairLock(), dict[str, list[float]]()
    async with lock.acquire("a"):
        second = asyncio.create_task(work(lock, "b", times))
        third = asyncio.create_task(work(lock, "c", times))
        await asyncio.sleep(0)
    second.cancel()  # the lock was granted, but the task has not run since
    await third
    assert list(times) == ["c"]
