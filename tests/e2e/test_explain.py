"""Tests with real processes and real problems that the first line of `lws explain` contains the problem."""

import json
import os
import shlex
import subprocess
import time
from pathlib import Path

import pytest
from tests.e2e.harness import LWS, SLEEP, LocalCluster, is_whole, lws, shell_script

from kuberuntime.objects.meta import JSONObject
from kuberuntime.standardstreams import PIPE_CLOSED

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

ENDS = {"LWS-E082": 3, "LWS-E084": 3}
"""The exit code is 3 if a running container may still become ready, and 4 (stuck) in all other cases."""

SECONDS = 30.0
"""The timeout for the fault and its diagnosis, including the start of the command."""

FALSE: JSONObject = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1}


def named(cluster: LocalCluster, target: str, code: str) -> str:
    """Wait until the first line contains the cause code. Return all lines."""
    deadline = time.monotonic() + SECONDS
    while True:
        result = cluster.ended("explain", target)
        first = result.stdout.partition("\n")[0]
        if f" ({code}): " in first:
            assert result.returncode == ENDS.get(code, 4), result.stdout
            return result.stdout
        assert time.monotonic() < deadline, f"not {code}: {result.stdout}{result.stderr}"


def test_crash_is_explained_with_exit_code_and_last_lines(cluster: LocalCluster) -> None:
    cluster.apply(lws("crash", shell_script("echo before; echo out of luck >&2; exit 3"), restart="None"))
    told = named(cluster, "crash", "LWS-E071")
    assert "crash is crashing (LWS-E071): container rank of pod crash-0 crashed with exit code 3 (Error)" in told
    assert "  out of luck" in told
    assert "logs crash/0/0" in told


def test_crash_after_a_slow_start_is_not_blamed_on_the_probe(cluster: LocalCluster, tmp_path: Path) -> None:
    """The liveness probe fails while the server loads, but the kubelet does not kill the container."""
    up = tmp_path / "up"
    program = f"echo loading; sleep 3; touch {up}; sleep 2; echo 'Error: no such model: llama' >&2; exit 3"
    probe: JSONObject = {"exec": {"command": ["test", "-f", str(up)]}, "periodSeconds": 1, "failureThreshold": 9}
    cluster.apply(lws("loads", shell_script(program, livenessProbe=probe), restart="None"))
    assert "exit code 3 (Error): Error: no such model: llama" in named(cluster, "loads", "LWS-E071")
    assert "Liveness probe failed" in cluster.lws("events", "loads")


def test_first_of_several_crashes_is_the_cause(cluster: LocalCluster) -> None:
    late = "if test $LWS_WORKER_INDEX = 1; then exit 7; fi; sleep 2; exit 8"
    cluster.apply(lws("chain", shell_script(late), size=3, restart="None"))
    cluster.until("chain", lambda view: sum(one["state"] != "Running" for one in view["groups"][0]["ranks"]) == 3)
    assert "container rank of pod chain-0-1 crashed" in named(cluster, "chain", "LWS-E071")


def test_missing_command_is_named(cluster: LocalCluster) -> None:
    cluster.apply(lws("bare", {"image": "vllm/vllm-openai:v9"}))
    assert "pod bare-0 has no executable on this machine" in named(cluster, "bare", "LWS-E057")
    assert "bare is stuck (LWS-E057): pod bare-0" in cluster.refused("wait", "bare", "--timeout=2", code=124)
    listed = cluster.shell.lws("get", f"--local={cluster.name}", "bare")
    assert listed.stdout.startswith("NAME")
    assert (
        "bare is stuck (LWS-E057): this machine has no executable for the image; use `lws --local=shared"
        in listed.stderr
    )


def test_unready_leader_with_ready_workers_is_named(cluster: LocalCluster) -> None:
    cluster.apply(lws("meet", SLEEP, size=3, leader=SLEEP | {"readinessProbe": FALSE}))
    assert "leader meet-0 is running but not ready, although its 2 workers are" in named(cluster, "meet", "LWS-E082")


def test_workers_that_wait_for_their_leader_are_named(cluster: LocalCluster) -> None:
    cluster.apply(lws("ordered", SLEEP, size=3, leader=SLEEP | {"readinessProbe": FALSE}, startupPolicy="LeaderReady"))
    told = named(cluster, "ordered", "LWS-E084")
    assert "2 workers of group 0 wait until leader ordered-0 is ready (startupPolicy LeaderReady)" in told


def test_json_document_has_the_same_diagnosis(cluster: LocalCluster) -> None:
    cluster.start(lws("fine", SLEEP, size=2))
    cluster.until("fine", is_whole)
    result = cluster.ended("explain", "fine", "-o", "json")
    assert result.returncode == 0
    (item,) = json.loads(result.stdout)["items"]
    assert (item["target"], item["verdict"], item["code"]) == ("fine", "healthy", None)
    assert cluster.ended("explain", "fine/0/1").stdout == "fine/0/1 is healthy: fine/0/1 is ready\n"
    assert "fine has 1 group of 2 ranks" in cluster.ended("explain", "fine/3").stderr
    assert "not found" in cluster.ended("explain", "nobody").stderr


def test_closed_pipe_ends_the_command_quietly(cluster: LocalCluster) -> None:
    cluster.apply(lws("cut", shell_script("exit 3"), restart="None"))
    first = named(cluster, "cut", "LWS-E071").partition("\n")[0]
    command = f"{shlex.join([*LWS, f'--local={cluster.name}', 'explain', 'cut'])} | head -1"
    result = cluster.shell.run(["bash", "-c", command])
    assert (result.stdout, result.stderr) == (f"{first}\n", "")
    reading, writing = os.pipe()
    os.close(reading)
    words = [*LWS, f"--local={cluster.name}", "explain", "cut"]
    unread = subprocess.run(
        words, env=cluster.shell.environment, stdout=writing, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writing)
    assert (unread.returncode, unread.stderr) == (PIPE_CLOSED, "")
