"""Tests that an idle cluster does not poll or write."""

import select

import pytest
from bench.processes import processes, revision, wakeups
from tests.e2e.harness import SLEEP, LocalCluster, Shell, lws

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

SETTLING = 8.0
"""Events of many groups are written together, with a delay of up to five seconds."""

SECONDS = 5.0
MOST = 10
"""The permitted number of wake-ups for necessary timers, such as watch timeouts and event series."""


def test_idle_cluster_neither_polls_nor_writes(shell: Shell) -> None:
    shell.lws("up", "bench", "--detach")
    LocalCluster(shell, "bench").start(lws("sleepers", SLEEP, replicas=2, size=2))
    pid = int((shell.state / "bench" / "lock").read_text())
    select.select([], [], [], SETTLING)
    watched = processes(pid)
    writes, woken = revision(str(shell.state)), sum(map(wakeups, watched))
    select.select([], [], [], SECONDS)
    assert sum(map(wakeups, watched)) - woken <= MOST
    assert revision(str(shell.state)) == writes
