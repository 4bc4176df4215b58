"""Tests that the order of simulated tasks does not depend on their addresses."""

import asyncio

from testkit.virtualtime import SingleThreadLoop, run


def test_tasks_of_a_group_are_cancelled_in_order_of_creation() -> None:
    cancelled: list[int] = []

    async def wait(number: int) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(number)

    async def cancel_all() -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(100):
                group.create_task(wait(number))
            await asyncio.sleep(1)
            raise ConnectionError

    try:
        run(cancel_all(), SingleThreadLoop)
    except* ConnectionError:
        pass
    assert cancelled == list(range(100))
