"""Tests that the objects of a killed cluster are preserved, and that no process or file of `lws` remains."""

import json
import os
import signal
import socket
import time
from urllib.parse import urlsplit

import pytest
import yaml
from testkit.waiting import until
from tests.e2e.harness import (
    SLEEP,
    LocalCluster,
    Running,
    Shell,
    facts,
    is_whole,
    line_with,
    lines_with,
    lws,
    python,
    ranks,
    shell_script,
)

from kuberuntime.objects.meta import JSONObject

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

DAEMONS = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("daemon", os.getppid(), flush=True)
        while True:
            time.sleep(1)
    os._exit(0)
os.wait()
print("started", flush=True)
while True:
    time.sleep(1)
"""
"""Forks two daemons, each in a separate session. Both daemons ignore SIGTERM."""

LAST_WORDS = """
import pathlib, signal, sys, time
def end(*_):
    pathlib.Path(sys.argv[1]).write_text("ended in good order")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print("started", flush=True)
while True:
    time.sleep(1)
"""


def write(shell: Shell, *objects: JSONObject) -> str:
    """Write a manifest. Return its path."""
    path = shell.base / "manifest.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return str(path)


def leader_process(shell: Shell, name: str = "up") -> int:
    """Return the PID of `lws up` or `lws run`."""
    (found,) = (pid for pid, words in shell.processes().items() if f"lwsctl.cli {name}" in words)
    return found


def port_of(shell: Shell) -> int:
    """Return the API server port of the only cluster."""
    (path,) = shell.state.glob("*/kubeconfig")
    cluster = yaml.safe_load(path.read_text())["clusters"][0]["cluster"]
    return urlsplit(cluster["server"]).port or 0


def await_free(port: int) -> None:
    """Wait until the port is free. The kernel closes it shortly after the process has exited."""

    def is_free() -> bool:
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            return False
        return True

    until(is_free, f"the end of the listener on port {port}", 5)


def test_killed_cluster_resumes_with_the_same_objects_and_pods(shell: Shell) -> None:
    cluster = LocalCluster(shell, "default")
    shell.lws("up", "--detach")
    cluster.start(lws("web", SLEEP, replicas=2, size=2))
    before = cluster.view("web")
    first = shell.processes("HOSTNAME=web-1-1")
    port = port_of(shell)
    os.kill(leader_process(shell), signal.SIGKILL)
    until(lambda: not shell.processes(), "the end of every process")
    await_free(port)
    assert "the embedded cluster default is not running" in shell.lws("get", "--local", code=1).stderr

    shell.lws("up", "--detach")
    cluster.until("web", lambda view: is_whole(view) and bool(shell.processes("HOSTNAME=web-1-1")))
    cluster.lws("wait", "web")
    after = cluster.view("web")
    assert facts(after, "uid") == facts(before, "uid")
    assert facts(after, "restarts") == dict.fromkeys(ranks(before), 0)
    assert after["leaderWorkerSet"]["metadata"]["uid"] == before["leaderWorkerSet"]["metadata"]["uid"]
    assert port_of(shell) == port
    assert not set(shell.processes("HOSTNAME=web-1-1")) & set(first)
    shell.lws("down")
    assert shell.lws("down").stdout == "Cluster default is not running.\n"
    shell.assert_nothing_is_left()


def started(shell: Shell, *words: str) -> Running:
    """Start ranks that fork daemons and ignore SIGTERM. Wait until all daemons run."""
    manifest = write(shell, lws("deaf", python(DAEMONS, grace=1), replicas=2, size=2))
    run = shell.start("run", "-f", manifest, *words)
    lines_with(run, "daemon", 4)
    return run


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 0), (signal.SIGTERM, 0), (signal.SIGHUP, 0), (signal.SIGKILL, -signal.SIGKILL)],
    ids=["Ctrl-C", "SIGTERM", "SIGHUP", "SIGKILL"],
)
def test_run_kills_daemons_and_processes_that_ignore_sigterm(shell: Shell, number: signal.Signals, code: int) -> None:
    run = started(shell)
    port = port_of(shell)
    assert len(shell.processes("LWS_WORKER_INDEX=1")) >= 4
    os.kill(run.pid, number)
    run.communicate(timeout=15)
    assert run.returncode == code
    until(lambda: not shell.processes(), "the end of every process", 5)
    await_free(port)
    if number is signal.SIGKILL:  # a killed process cannot clean up, so that the next run does it
        assert list(shell.state.glob("run-*"))
        shell.lws("run", "-f", write(shell, lws("next", SLEEP)), "--until", "ready", "--timeout", "30")
    shell.assert_nothing_is_left()


def test_second_ctrl_c_stops_a_run_immediately(shell: Shell) -> None:
    manifest = write(shell, lws("deaf", python(DAEMONS, grace=30)))
    run = shell.start("run", "-f", manifest)
    line_with(run, "daemon")
    os.kill(run.pid, signal.SIGINT)
    assert run.stderr is not None
    assert any("press Ctrl-C again to kill them now" in line for line in iter(run.stderr.readline, ""))
    os.kill(run.pid, signal.SIGINT)
    run.communicate(timeout=10)
    assert run.returncode == 130
    shell.assert_nothing_is_left()


def test_ctrl_c_stops_many_unresponsive_sets_together(shell: Shell) -> None:
    """The grace periods of 30 seconds are not applied, and the LeaderWorkerSets are deleted in parallel."""
    deaf = shell_script("trap '' TERM; echo deaf; while :; do sleep 0.5; done", grace=30)
    run = shell.start("run", "-f", write(shell, *(lws(f"deaf-{number}", deaf) for number in range(24))))
    lines_with(run, "deaf", 24)
    os.kill(run.pid, signal.SIGINT)
    began = time.monotonic()
    _, notes = run.communicate(timeout=30)
    assert time.monotonic() - began < 8  # about 4 s on an idle machine, and less than 5 s under load
    assert "stopping: ranks have 3 s to exit" in notes
    assert run.returncode == 0
    shell.assert_nothing_is_left()


def test_last_output_of_ranks_is_shown_after_ctrl_c(shell: Shell) -> None:
    trap = "trap 'echo saved rank $LWS_WORKER_INDEX; exit 0' TERM; echo started; while :; do sleep 0.1; done"
    run = shell.start("run", "-f", write(shell, lws("wordy", shell_script(trap, grace=5), size=2)))
    lines_with(run, "started", 2)
    os.kill(run.pid, signal.SIGINT)
    shown, told = run.communicate(timeout=30)
    assert run.returncode == 0
    assert {"0/0 saved rank 0", "0/1 saved rank 1"} <= set(shown.splitlines()), told
    shell.assert_nothing_is_left()


def test_ranks_receive_sigterm_before_sigkill(shell: Shell) -> None:
    file = shell.base / "last-words"
    container = python(LAST_WORDS)
    container["command"].append(str(file))
    run = shell.start("run", "-f", write(shell, lws("polite", container)))
    line_with(run, "started")
    os.kill(run.pid, signal.SIGINT)
    run.communicate(timeout=10)
    assert run.returncode == 0
    assert file.read_text() == "ended in good order"
    shell.assert_nothing_is_left()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_foreground_cluster_stops_on_a_signal(shell: Shell, number: signal.Signals) -> None:
    up = shell.start("up", "here")
    line_with(up, "KUBECONFIG")
    cluster = LocalCluster(shell, "here")
    cluster.start(lws("web", SLEEP, size=2))
    port = port_of(shell)
    up.send_signal(number)
    up.communicate(timeout=15)
    assert up.returncode == 0
    await_free(port)
    shell.assert_nothing_is_left()


def test_daemons_of_terminated_ranks_are_stopped(shell: Shell) -> None:
    cluster = LocalCluster(shell, "default")
    shell.lws("up", "--detach")
    script = shell_script(
        "setsid sh -c 'trap \"\" TERM HUP; sleep 1000' & [ $LWS_WORKER_INDEX = 1 ] && exit 3; sleep 1000", grace=1
    )
    cluster.apply(lws("web", script, size=3, restart="None"))
    crashed = cluster.until("web", lambda view: ranks(view)["0/1"]["restarts"] >= 1)
    assert "exit code 3" in ranks(crashed)["0/1"]["why"] or ranks(crashed)["0/1"]["state"] == "Running"
    before = set(shell.processes("HOSTNAME=web-0-2"))
    assert len(before) > 1
    (program,) = (
        pid for pid, words in shell.processes("HOSTNAME=web-0-2").items() if "trap" in words and "LWS_W" in words
    )
    os.kill(program, signal.SIGKILL)
    cluster.until("web", lambda view: ranks(view)["0/2"]["restarts"] == 1)
    until(lambda: not before & set(shell.processes()), "the end of the daemons of the killed rank", 5)
    cluster.lws("delete", "web")
    until(lambda: not shell.processes("LWS_WORKER_INDEX=1"), "the end of the daemons", 5)
    shell.lws("down", "--delete")
    assert not [path for path in shell.state.glob("*") if path.is_dir()]
    shell.assert_nothing_is_left()
