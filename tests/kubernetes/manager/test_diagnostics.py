"""Tests the diagnostics that a running manager prints on signals."""

import json
import signal

import pytest
from tests.kubernetes.manager.replicas import until
from tests.kubernetes.manager.world import InstalledCluster

pytestmark = pytest.mark.slow


async def test_signals_request_stacks_memory_and_debug_logs(world: InstalledCluster) -> None:
    """The interpreter prints threads, and the log contains tasks and memory. The log level is toggled."""
    replica = await world.start("a")
    await world.await_master(replica)

    async def ask(number: signal.Signals, text: str) -> str:
        begun = len(replica.log.read_text())
        replica.process.send_signal(number)

        async def is_there() -> bool:
            return text in replica.log.read_text()[begun:]

        await until(is_there, replica)
        return replica.log.read_text()[begun:]

    told = await ask(signal.SIGUSR1, "diagnostics\tmemory\t")
    assert "Current thread 0x" in told
    assert "leaderelection.py" in told
    (memory,) = [line for line in told.splitlines() if "\tdiagnostics\tmemory\t" in line]
    found = json.loads(memory.rpartition("\t")[2])
    assert found["process"]["VmRSS"].endswith(" kB")
    assert found["objects"] > found["types"]["function"] > 0

    assert "\tDEBUG\t" not in replica.log.read_text()
    assert '{"lowest":"debug"}' in await ask(signal.SIGUSR2, "log level changed")
    await ask(signal.SIGUSR1, "diagnostics\tmemory\t")
    assert '{"lowest":"info"}' in await ask(signal.SIGUSR2, "log level changed")
    assert await replica.stop() < 30
