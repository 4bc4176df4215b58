"""Tests that commands connected to a cluster exit when it stops, with a clear message and no traceback."""

import signal
import subprocess
from collections.abc import Iterator

import pytest
from tests.e2e.harness import LocalCluster, Running, Shell, line_with, lws, shell_script

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

HELLO = shell_script("echo hello; exec sleep 1000", grace=1)
LIMIT = 30
ENDED = "error: cluster ends has stopped; use `lws up ends` to start it"
ATTACHED = {
    "table": (["get", "-w"], "web-0"),
    "document": (["get", "web", "-w", "-o", "view"], "web-0"),
    "logs": (["logs", "web", "-f"], "hello"),
    "wait": (["wait", "web", "--for=replicas=2"], ""),
    "exec": (["exec", "web/0", "--", "sh", "-c", "echo attached; exec sleep 1000"], "attached"),
    "forward": (["port-forward", "web/0", ":8080"], "-> web-0:8080"),
}


@pytest.fixture
def attached(shell: Shell) -> Iterator[dict[str, Running]]:
    """Start a cluster with a group, and all commands that remain connected to the cluster.

    Return the commands after all are attached.
    """
    shell.lws("up", "ends", "--detach")
    LocalCluster(shell, "ends").start(lws("web", HELLO))
    found = {name: shell.start(words[0], "--local=ends", *words[1:]) for name, (words, _) in ATTACHED.items()}
    try:
        for name, (_, first) in ATTACHED.items():
            if first:
                line_with(found[name], first)
        assert found["wait"].stderr is not None
        assert found["wait"].stderr.readline().startswith("web: ")
        yield found
    finally:
        for process in found.values():
            process.kill()
            process.communicate()


def ends(found: dict[str, Running]) -> dict[str, tuple[int, list[str]]]:
    """Return the exit code of each command, and its stderr output after it was connected."""
    told = {name: process.communicate(timeout=LIMIT)[1].splitlines() for name, process in found.items()}
    return {name: (found[name].returncode, lines) for name, lines in told.items()}


def test_commands_exit_with_a_stopped_cluster(shell: Shell, attached: dict[str, Running]) -> None:
    shell.lws("down", "ends")
    told = ends(attached)
    for name in ("table", "document", "logs", "wait"):
        assert told[name] == (1, [ENDED]), name
    code, (line,) = told["exec"]
    assert (code, line[:43]) == (137, "web-0: the command was killed (exit code 13"), line
    code, (line,) = told["forward"]
    assert (code, line[:65]) == (1, "error: port-forward stopped: the cluster no longer responds: cann"), line


def test_commands_exit_with_a_killed_cluster(shell: Shell, attached: dict[str, Running]) -> None:
    pid = int((shell.state / "ends" / "lock").read_text())
    subprocess.run(["kill", f"-{signal.SIGKILL.value}", str(pid)], check=True)
    told = ends(attached)
    for name in ("table", "document", "logs", "wait"):
        assert told[name] == (1, [ENDED]), name
    assert told["exec"] == (1, ["error: the connection was closed before the command exited"])
    code, (line,) = told["forward"]
    assert (code, line[:65]) == (1, "error: port-forward stopped: the cluster no longer responds: cann"), line
