"""Tests the start duration of pods and the cost of a stub."""

import asyncio
import os
import sys
import time
from pathlib import Path

import pytest
from tests.integration.sandbox.harness import Machine

from localkube.kubelet.processes import processtree
from localkube.kubelet.processes.runner import Exit
from localkube.kubelet.sandbox.sandboxrunner import AT_ONCE

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

FETCH = "from urllib.request import urlopen; print(urlopen('http://{address}:8080').read().decode(), end='')"
SECONDS = 10.0  # far above the normal duration, so that the test also passes on a busy machine
STUBS = 50
FILLING = 1050
"""The number of pods exceeds the ports of a bridge, and their descriptors exceed the limit of select()."""


async def test_fifty_stub_pods_start_within_seconds_and_stay_small(made: Machine) -> None:
    begin = time.monotonic()

    async def stub(number: int) -> None:
        program = await made.start(await made.pod(f"pod-{number}"), stub_ports=(8080,))
        assert (await program.line()).startswith("stub: serving")

    await asyncio.gather(*(stub(number) for number in range(STUBS)))
    seconds = time.monotonic() - begin
    own = [
        _own_memory(pid)
        for pid in processtree.descendants([os.getpid()], processtree.read())
        if _name(pid) == "kube-stub"
    ]
    assert len(own) == STUBS
    assert seconds < SECONDS
    assert max(own) < 4 << 20
    begin = time.monotonic()
    await asyncio.gather(*(made.runner.remove_sandbox(f"pod-{number}") for number in range(STUBS)))
    assert time.monotonic() - begin < SECONDS
    print(f"{STUBS} stubs: {seconds:.2f} s, {sum(own) / STUBS / 2**10:.0f} KiB each of their own")  # noqa: T201


async def test_probe_socket_does_not_wait_for_other_pods(made: Machine) -> None:
    names = [f"pod-{number}" for number in range(100)]
    for change in (made.pod, made.runner.remove_sandbox):
        changing = [asyncio.create_task(change(name)) for name in names]
        await asyncio.wait(changing, return_when=asyncio.FIRST_COMPLETED)
        (await made.runner.open_socket(None)).close()
        before = sum(task.done() for task in changing)
        await asyncio.gather(*changing)
        assert before <= 2 * AT_ONCE


async def test_pods_work_beyond_1024_files_and_1024_ports(made: Machine) -> None:
    first = await made.start(await made.pod("first"), stub_ports=(8080,))
    assert (await first.line()).startswith("stub: serving")
    await asyncio.gather(*(made.pod(f"empty-{number}") for number in range(FILLING)))
    program = await made.start(await made.pod("late"), stub_ports=(8080,))
    assert (await program.line()).startswith("stub: serving")
    fetch = FETCH.format(address=made.addresses["first"])
    last = await made.start(await made.pod("last"), sys.executable, "-c", fetch)
    assert await last.finish() == (Exit(0), "stub\n")
    assert await made.sh("last", "exit 3") == (Exit(3), "")
    assert not first.ended.done()
    assert not made.lost


async def test_addresses_of_removed_pods_are_not_reused_immediately(made: Machine) -> None:
    for number in range(3):
        await made.pod(f"pod-{number}")
        await made.runner.remove_sandbox(f"pod-{number}")
    assert len(set(made.addresses.values())) == 3


async def test_container_lacks_the_mounts_of_other_pods(made: Machine) -> None:
    counts = []
    for number in range(10):
        _, output = await made.sh(await made.pod(f"pod-{number}"), "grep -c /state/sandbox /proc/self/mountinfo")
        counts.append(output)
    assert counts == ["0\n"] * 10


def _own_memory(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Private_"))


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""
