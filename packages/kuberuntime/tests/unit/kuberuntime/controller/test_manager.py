"""Tests that all parts of a process run together and stop together."""

import asyncio

import pytest
from testkit.virtualtime import run

from kuberuntime.controller.manager import Manager


class Part:
    """Runs forever, or fails after the given number of seconds."""

    def __init__(self, fails_after: float | None = None) -> None:
        self.ended = False
        self._fails_after = fails_after

    async def run(self) -> None:
        try:
            await asyncio.sleep(self._fails_after or 1e9)
            raise RuntimeError("broken")
        finally:
            self.ended = True


def test_failing_component_stops_the_others() -> None:
    steady = Part()

    with pytest.raises(ExceptionGroup) as caught:
        run(Manager(informers=[], runnables=[steady, Part(fails_after=3)]).run())

    assert [str(error) for error in caught.value.exceptions] == ["broken"]
    assert steady.ended


@pytest.mark.virtual_time
async def test_cancellation_stops_all_runnables() -> None:
    parts = [Part(), Part()]

    task = asyncio.ensure_future(Manager(informers=[], runnables=parts).run())
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.wait([task])

    assert [part.ended for part in parts] == [True, True]
