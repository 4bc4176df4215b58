"""Tests that components start in order, drain together, stop in reverse order, and fail together."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from testkit import virtualtime

from kuberuntime.errors import ConfigError
from leaderworkerset.manager import components
from leaderworkerset.manager.components import run_in_background


class Recorded:
    """A component that records its calls. `drain` takes one second."""

    def __init__(self, name: str, happened: list[str], *, error: Exception | None = None) -> None:
        self._name = name
        self._happened = happened
        self._error = error

    @property
    def is_ready(self) -> bool:
        return True

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with run_in_background(self._work()):
            self._happened.append(f"{self._name} starts")
            try:
                yield
            finally:
                self._happened.append(f"{self._name} ends")

    async def drain(self) -> None:
        self._happened.append(f"{self._name} drains")
        await asyncio.sleep(1)

    async def _work(self) -> None:
        if self._error is not None:
            await asyncio.sleep(1)
            raise self._error
        await asyncio.Event().wait()


@pytest.mark.virtual_time
async def test_parts_start_in_order_drain_together_and_end_in_reverse() -> None:
    happened: list[str] = []

    stopped, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.call_later(10, stopped.set)
    await components.run([Recorded("a", happened), Recorded("b", happened)], stopped)
    assert loop.time() == pytest.approx(11, abs=0.1)
    assert happened == ["a starts", "b starts", "a drains", "b drains", "b ends", "a ends"]


def test_error_in_one_component_stops_all_without_draining() -> None:
    happened: list[str] = []
    failing = Recorded("a", happened, error=ConfigError("the port is taken"))

    async def scenario() -> None:
        await components.run([failing, Recorded("b", happened)], asyncio.Event())

    with pytest.raises(ExceptionGroup) as raised:
        virtualtime.run(scenario())
    assert raised.group_contains(ConfigError, match="the port is taken")
    assert happened == ["a starts", "b starts", "b ends", "a ends"]
