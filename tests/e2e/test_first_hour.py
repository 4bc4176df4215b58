"""Tests the first hour of a new user with each terminal width.

The user has failing programs, two clusters, a hundred groups, and a rollout.
"""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.harness import SLEEP, LocalCluster, Shell, clean_up, line_with, lws, make_shell, shell_script
from tests.e2e.terminals import terminal

from kuberuntime.objects.meta import JSONObject

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

PROGRAMS: dict[str, JSONObject] = {
    "dies": shell_script("echo boom >&2; exit 3"),
    "raises": {"command": ["python3", "-c", "{}['rank']"]},
    "absent": {"command": ["no-such-program"]},
    "ports": SLEEP | {"ports": [{"containerPort": 99999}]},
    "hungry": SLEEP | {"resources": {"limits": {"nvidia.com/gpu": 8}}},
}

SCREENS = {
    ("dies", 60): [
        "NAME  READY  DESIRED  UP-TO-DATE  AGE",
        "dies  0  1  1  #",
        "GROUP  RANK  POD  STATE  READY  RESTARTS",
        "0  0  dies-0  CrashLoopBackOff  no  %",
        "dies-0: rank: last line: boom (Error, exit code 3); waiting",
        "  to be restarted",
    ],
    ("raises", 160): [
        "NAME  READY  DESIRED  UP-TO-DATE  AGE",
        "raises  0  1  1  #",
        "GROUP  RANK  POD  STATE  READY  RESTARTS  AGE  WHY",
        (
            "0  0  raises-0  CrashLoopBackOff  no  %  #  "
            "rank: KeyError: 'rank' (Error, exit code 1); waiting to be restarted"
        ),
    ],
    ("absent", 80): [
        "NAME  READY  DESIRED  UP-TO-DATE  AGE",
        "absent  0  1  1  #",
        "GROUP  RANK  POD  STATE  READY  RESTARTS  AGE",
        "0  0  absent-0  ProgramNotFound  no  %  #",
        'absent-0: rank: program "no-such-program" is not installed on this machine.',
        "  Install it, or correct the command",
    ],
    ("ports", 80): [
        "NAME  READY  DESIRED  UP-TO-DATE  AGE",
        "ports  0  1  0  #",
        "GROUP  RANK  POD  STATE  READY  RESTARTS  AGE",
        "0  0  ports-0  not created yet  no  %",
        'ports-0: Failed to create leader statefulset ports: StatefulSet.apps "ports" is',
        "  invalid: spec.template.spec.containers[0].ports[0].containerPort: Invalid",
        "  value: 99999: must be between 1 and 65535, inclusive",
    ],
    ("hungry", 60): [
        "NAME  READY  DESIRED  UP-TO-DATE  AGE",
        "hungry  0  1  1  #",
        "GROUP  RANK  POD  STATE  READY  RESTARTS  AGE",
        "0  0  hungry-0  Pending  no  %  #",
        "hungry-0: 0/1 nodes are available: 1 Insufficient",
        "  nvidia.com/gpu.",
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A cluster in which five programs fail."""
    shell = make_shell(tmp_path_factory.mktemp("first-hour"))
    shell.lws("up", "first", "--detach")
    cluster = LocalCluster(shell, "first")
    cluster.apply(*(lws(name, program, restart="None") for name, program in PROGRAMS.items()))
    yield cluster
    clean_up(shell)
    shell.assert_nothing_is_left()


@pytest.mark.parametrize(("name", "columns"), list(SCREENS), ids=str)
def test_failing_program_is_explained_at_every_width(failing: LocalCluster, name: str, columns: int) -> None:
    with terminal(failing.shell, "get", "--local=first", name, "-w", columns=columns) as screen:
        screen.until_shows(SCREENS[name, columns])
        screen.type("\x03")
        assert screen.end() == 130


def test_awaited_states_are_described(failing: LocalCluster) -> None:
    failing.start(lws("fine", SLEEP))
    assert failing.lws("wait", "fine") == "fine is ready\n"
    assert failing.lws("scale", "fine", "--replicas=1") == "fine already has 1 group\n"
    assert failing.lws("scale", "fine", "--replicas=2") == "fine scaled from 1 to 2 groups\n"
    text = json.dumps(lws("fine", SLEEP))
    taken = "leaderworkerset/fine configured (taken over from lws scale: spec.replicas 2 -> 1)\n"
    assert failing.lws("apply", "-f", "-", text=text) == taken
    assert "managedFields" not in failing.lws("get", "fine", "-o", "yaml")
    assert "managedFields" in failing.lws("get", "fine", "-o", "yaml", "--show-managed-fields")
    assert re.search(r"^default/fine:$", failing.lws("get", "-A"), re.MULTILINE)
    failing.lws("delete", "fine")


def test_all_clusters_end_together_with_a_port_forward(shell: Shell) -> None:
    for name in ("second", "third"):
        shell.lws("up", name, "--detach")
    listed = {line.split()[0]: line.split()[1] for line in shell.lws("clusters").stdout.splitlines()[1:]}
    assert listed == {"second": "running", "third": "running"}
    assert "No LeaderWorkerSets found" in shell.lws("get", "--local=third").stderr
    LocalCluster(shell, "second").start(lws("served", SLEEP))
    forward = shell.start("port-forward", "--local=second", "served/0", ":8080")
    assert "served-0:8080" in line_with(forward, "->")
    shell.lws("down", "--all")
    _, told = forward.communicate(timeout=60)
    assert forward.returncode == 1
    assert told.startswith("error: port-forward stopped: the cluster no longer responds")


STUB: JSONObject = {"image": "vllm/vllm-openai:1", "command": ["serve"]}
ROLLOUT: JSONObject = {
    "type": "RollingUpdate",
    "rollingUpdateConfiguration": {"maxUnavailable": "20%"},
}


def test_large_set_stays_readable_during_a_rollout(shell: Shell) -> None:
    shell.lws("up", "big", "--detach", "--stub", "--nodes=4")
    cluster = LocalCluster(shell, "big")
    cluster.apply(lws("big", STUB, replicas=40, size=2, rolloutStrategy=ROLLOUT))
    with terminal(shell, "get", "--local=big", "-w", columns=80) as screen:
        screen.until_screen(r"^big +40 +40 +40 (.*\n)+… and \d\d more groups, all ready$", 240)
        cluster.apply(lws("big", STUB | {"image": "vllm/vllm-openai:2"}, replicas=40, size=2, rolloutStrategy=ROLLOUT))
        shown = screen.until_screen(r"^big: updated [1-9]\d* of 40 groups(.*\n)+… and \d+ more groups", 240)
        first = shown[shown.index(next(line for line in shown if line.startswith("GROUP"))) + 1]
        assert re.match(r"\d+ +[01]/2 ", first), first
        screen.type("\x03")
        screen.end()
    assert len([line for line in screen.screen() if line]) <= 24


def test_piped_output_has_one_line_per_group_and_second(shell: Shell, tmp_path: Path) -> None:
    manifest = tmp_path / "lws.json"
    manifest.write_text(json.dumps(lws("many", STUB, replicas=12, size=4)))
    began = time.monotonic()
    told = shell.lws("run", "--stub", "-f", str(manifest), "--until", "ready").stderr.splitlines()
    seconds = time.monotonic() - began
    for group in range(12):
        lines = [line for line in told if line.startswith(f"many group {group}:")]
        assert lines[-1] == f"many group {group}: 4 of 4 ranks ready"
        assert len(lines) <= seconds + 2, lines
    assert not any(line.startswith("{") for line in told)
    assert sum(line.startswith("Note: ") for line in told) <= 1


def test_run_of_several_sets_names_each_line(shell: Shell) -> None:
    """`lws logs` follows the same rule."""
    says = shell_script("echo I am $LWS_LEADER_ADDRESS; exec sleep 600", grace=1)
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [lws("prefill", says), lws("decode", says)]})
    lines = shell.lws("run", "-", "--until=ready", "--timeout=60", text=text).stdout.splitlines()
    assert {line.split(" ")[0] for line in lines} == {"prefill/0/0", "decode/0/0"}


def test_run_until_ready_wants_ready_to_last(shell: Shell, tmp_path: Path) -> None:
    """The container fails before it becomes ready, and a later run takes eight seconds."""
    mark = tmp_path / "failed"
    script = f"[ -e {mark} ] || {{ touch {mark}; exit 2; }}; sleep 8; exit 2"
    probe = {"exec": {"command": ["true"]}, "initialDelaySeconds": 1, "periodSeconds": 1}
    fails = json.dumps(lws("quick", shell_script(script, grace=1) | {"readinessProbe": probe}))
    told = shell.lws("run", "-", "--until=ready", "--timeout=30", text=fails, code=124).stderr
    assert "1 of 1 rank ready" in told
    assert "quick is crashing (LWS-E071)" in told
