"""Tests CPU limits of containers on machines that allow the creation of cgroups."""

import asyncio
import os
import time
from pathlib import Path

import pytest
from tests.integration.sandbox.harness import Machine, machine

from localkube.kubelet.sandbox import cpugroups
from localkube.kubelet.sandbox.sandboxrunner import NO_LIMITS

BUSY = "while :; do :; done & while :; do :; done"
"""A CPU limit applies to the whole container, so it is tested with two busy processes."""

LIMIT = 0.05
"""A limit in CPU cores that a container without a limit exceeds even on a busy machine."""

MEASURED = 2.0
"""The duration of the CPU measurement in seconds, which spans many scheduling periods of the kernel."""


async def cores(made: Machine, pid: int) -> float:
    """Return the average number of CPUs that a container used during the measurement."""
    before, begun = (await made.runner.read_usage([pid]))[pid].seconds, time.monotonic()
    await asyncio.sleep(MEASURED)
    return ((await made.runner.read_usage([pid]))[pid].seconds - before) / (time.monotonic() - begun)


def groups() -> set[Path]:
    """Return the cgroups of this process."""
    mounts, own = (Path("/proc/self", name).read_text() for name in ("mountinfo", "cgroup"))
    around = cpugroups.parent_groups(mounts, own)
    return {path for parent in around for path in parent.directory.glob(f"{cpugroups.PREFIX}{os.getpid()}-*")}


@pytest.mark.sandbox
async def test_container_gets_the_processor_time_of_its_limit(tmp_path: Path) -> None:
    async with machine(tmp_path) as made:
        if NO_LIMITS in made.capabilities.missing:
            pytest.skip(f"this machine refuses cgroups: {NO_LIMITS}")
        busy = await made.start(await made.pod("a"), "sh", "-c", BUSY)
        await made.runner.limit_cpu(busy.pid, LIMIT)
        limited = await cores(made, busy.pid)
        await made.runner.limit_cpu(busy.pid, 0)  # a resize may remove the limit
        unlimited = await cores(made, busy.pid)
        assert len(groups()) == 1
    assert limited < 2 * LIMIT < unlimited
    assert not groups()


def test_groups_of_a_killed_cluster_are_removed() -> None:
    running = cpugroups.find_groups()
    if running is None:
        pytest.skip(f"this machine refuses cgroups: {NO_LIMITS}")
    (own,) = groups()
    left = own.with_name(f"{cpugroups.PREFIX}{2**22}-killed")  # Linux does not assign this process ID
    (left / "1").mkdir(parents=True)
    other = cpugroups.find_groups()
    assert other is not None
    assert (own.exists(), left.exists()) == (True, False)
    for cluster in (running, other):
        cluster.close()
    assert not groups()
