"""Tests that only a few pods start at the same time, and that a blocked start does not delay others."""

import asyncio
from pathlib import Path

import pytest

from localkube.kubelet.sandbox.sandboxrunner import AT_ONCE, LONGEST_TURN, SandboxRunner

pytestmark = pytest.mark.virtual_time


async def test_hanging_start_releases_its_slot(tmp_path: Path) -> None:
    runner = SandboxRunner(network="shared", state_directory=tmp_path)
    began: list[float] = []

    async def start(seconds: float) -> None:
        async with runner.acquire():
            began.append(asyncio.get_running_loop().time())
            await asyncio.sleep(seconds)

    await asyncio.gather(*(start(60) for _ in range(AT_ONCE)), start(1), *(start(1) for _ in range(AT_ONCE)))
    assert began == [0.0] * AT_ONCE + [LONGEST_TURN] * AT_ONCE + [LONGEST_TURN + 1]
