"""Tests that a node recovers quickly after its launcher process is killed, and that pods continue to run."""

import os
import signal

import pytest
from bench.processes import processes
from testkit.waiting import until
from tests.e2e.harness import SLEEP, LocalCluster, Shell, facts, is_whole, lws, ranks

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]


def test_groups_survive_a_killed_launcher(shell: Shell) -> None:
    shell.lws("up", "mended", "--detach")
    cluster = LocalCluster(shell, "mended")
    cluster.start(lws("sleepers", SLEEP, replicas=2, size=2))
    pods = set(facts(cluster.view("sleepers"), "pod").values())
    before = shell.processes("LWS_GROUP_SIZE=2")
    launcher = processes(int((shell.state / "mended" / "lock").read_text()))[1]
    os.kill(launcher, signal.SIGKILL)
    until(lambda: not before.keys() & shell.processes("LWS_GROUP_SIZE=2").keys(), "the end of the first processes")

    def sleeping() -> int:
        return sum(words.startswith("sleep") for words in shell.processes("LWS_GROUP_SIZE=2").values())

    until(lambda: sleeping() == 4, "a new process of each rank")
    view = cluster.until("sleepers", is_whole)
    assert set(facts(view, "pod").values()) == pods
    assert {rank["restarts"] for rank in ranks(view).values()} == {0}
    assert sleeping() == 4
