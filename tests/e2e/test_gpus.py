"""Tests GPUs with a fake NVML library. Each rank uses separate GPUs, even after `kill -9`."""

import json
import os
import re
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from testkit.fakenvml import FakeMachine, gpus
from testkit.waiting import until
from tests.e2e.harness import SELDOM, LocalCluster, Shell, lws
from tests.e2e.test_dashboard import Browser

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

SAYS = "import os, time; print('sees', os.environ['CUDA_VISIBLE_DEVICES'], flush=True); time.sleep(1000)"


def test_each_rank_keeps_its_own_gpu_after_a_kill(shell: Shell, tmp_path: Path) -> None:
    machine = FakeMachine(tmp_path / "gpus.json", *gpus(4))
    shell = replace(shell, environment={**shell.environment, **machine.variables})
    cluster = LocalCluster(shell, "gpus")
    started = shell.lws("up", "gpus", "--detach", "--gpus=host", "--nodes=2")
    assert "GPUs of this machine: 4 (Fake GPU; driver 570.1)" in started.stdout
    assert "a different local cluster" in shell.lws("up", "more", "--detach", "--gpus=host", code=1).stderr

    container = {"command": ["python3", "-c", SAYS], "resources": {"limits": {"nvidia.com/gpu": 1}}}
    cluster.apply(lws("train", container, replicas=0, size=2))
    assert cluster.ended("top").stderr == "No ranks found.\n"
    cluster.apply(lws("train", container, replicas=2, size=2))
    cluster.lws("wait", "train", "--timeout=120s")
    wide = cluster.lws("get", "train", "-o", "wide")
    assert all(f"GPU-{number}" in wide for number in range(4))
    machine.change(1, busy=87, pids=[1])
    used = cluster.lws("top", "train", "--sort", "gpu")
    assert re.search(r"^train/\d/\d +node-0 .* 87% of 1 +1Gi$", used.splitlines()[1])
    usage = cluster.lws("get", "train", "-o", "wide").splitlines()
    assert re.search(r"DEVICES +CPU +MEMORY +GPU +GPU MEMORY$", usage[3])
    assert any(re.search(r"GPU-1 .* 87% of 1 +1Gi$", line) for line in usage)
    with shell.running("dashboard", "--local=gpus", "--no-browser") as dashboard:
        browser = Browser(dashboard)
        assert "<td>87% of 1</td><td>1Gi</td><td>GPU-1</td>" in browser.text("sets/default/train?as=table")
        panes = [browser.text(f"pane/default/train/{place}") for place in ("0/0", "0/1", "1/0", "1/1")]
        assert sum("<dd>87% of 1</dd>" in pane and "<dd>GPU-1</dd>" in pane for pane in panes) == 1
        assert all("GPU memory" in pane for pane in panes)
    logs = cluster.lws("logs", "train")
    assert all(f"sees GPU-{number}" in logs for number in range(4))

    (running,) = [one for one in json.loads(shell.lws("clusters", "-o", "json").stdout)["items"] if one["pid"]]
    os.kill(running["pid"], signal.SIGKILL)
    until(lambda: not shell.processes("HOSTNAME=train-0"), "the end of the ranks", poll=SELDOM)
    shell.lws("up", "gpus", "--detach", "--expose-gpus")
    cluster.lws("wait", "train", "--timeout=120s")
    again = cluster.lws("get", "train", "-o", "wide")
    assert all(f"GPU-{number}" in again for number in range(4))

    cluster.apply(lws("plain", {"command": container["command"]}, replicas=1, size=1))
    cluster.lws("wait", "plain", "--timeout=120s")
    seen = sorted(cluster.lws("logs", "plain").split()[-1].split(","))
    assert seen in (["GPU-0", "GPU-1"], ["GPU-2", "GPU-3"])  # the GPUs of its node

    machine.change(0, lost=True)
    cluster.apply(lws("more", container))
    lost = "GPU-0 is unhealthy: GPU is lost"
    until(lambda: lost in cluster.ended("explain", "more").stdout, "the cause", poll=SELDOM)
    shell.lws("down", "gpus", "--delete")
    shell.assert_nothing_is_left()
