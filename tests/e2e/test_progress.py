"""Tests the progress of leaders, hanging ranks, and runs to completion on a cluster of `lws up`."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from testkit.waiting import until
from tests.e2e.harness import ROOT, SELDOM, LocalCluster, Shell, lws, shell_script

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from lwsctl.cli.sets.causes import FIRST

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

TIMEOUT: Final = 8.0
"""The time in seconds without progress after which a group is considered hanging."""

TRAIN: Final = """
import os, select, socket, sys, threading, time

HANG, STEPS = sys.argv[1], 4
print("::lws progress step=zero " + "x" * 100_000)
if os.environ["LWS_WORKER_INDEX"] == "0":
    server = socket.create_server(("0.0.0.0", 9000))
    peer, _ = server.accept()
    for step in range(1, STEPS + 1):
        peer.recv(1)
        print(f"::lws progress step={step} total=100 loss={2 / step:.3f} secret", flush=True)
    if HANG == "socket":
        peer.close()
        time.sleep(0.5)
        print("the connection is closed", flush=True)
        server.accept()
    peer.recv(1)
while True:
    try:
        leader = socket.create_connection((os.environ["LWS_LEADER_ADDRESS"], 9000))
        break
    except OSError:
        time.sleep(0.1)
for step in range(1, STEPS + 1):
    print("sends", step, flush=True)
    time.sleep(0.2)
    leader.send(b".")
if HANG == "lock":
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
if HANG == "sleep":
    time.sleep(3600)
poll = select.poll()
poll.register(leader, 0)
poll.poll()
"""

FINISH: Final = """
import os, sys, time
if os.environ["LWS_WORKER_INDEX"] != "0":
    time.sleep(3600)
for step in range(3):
    print(f"::lws progress step={step + 1} total=3", flush=True)
    time.sleep(0.3)
print("saved the model", flush=True)
"""


def team(name: str, program: str, annotations: Mapping[str, str], *words: str, **spec: Any) -> JSONObject:
    """Return a LeaderWorkerSet whose groups have two ranks that run a Python script."""
    command = ["python3", "-c", program, *words]
    container = {"name": "main", "image": "python", "command": command}
    template = {"spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name, "annotations": dict(annotations)},
        "spec": {"replicas": 1, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template}} | spec,
    }


def has_hang(view: JSONObject) -> bool:
    return any("hang" in group for group in view["groups"])


def test_hanging_rank_is_named_with_its_wait(cluster: LocalCluster) -> None:
    watched = {labels.PROGRESS_TIMEOUT: f"{TIMEOUT:g}s"}
    words = {
        "lock": "a lock (futex)",
        "sleep": "a timer (sleep)",
        "socket": "a socket that the peer has closed, hung-socket-0 (",
    }
    cluster.apply(*(team(f"hung-{kind}", TRAIN, watched, kind) for kind in words))

    def hung(kind: str) -> tuple[JSONObject, datetime]:
        return cluster.until(f"hung-{kind}", has_hang), datetime.now(UTC)

    with ThreadPoolExecutor() as threads:
        seen = dict(zip(words, threads.map(hung, words), strict=True))
    for kind, expected in words.items():
        name, (view, at) = f"hung-{kind}", seen[kind]
        hang, progress = view["groups"][0]["hang"], view["groups"][0]["progress"]
        took = (at - datetime.fromisoformat(hang["since"])).total_seconds()
        assert took >= TIMEOUT, kind
        blamed = hang["ranks"][0]
        assert (blamed["rank"], blamed["pod"]) == (1, f"{name}-0-1")
        assert blamed["waits"].startswith(expected)
        assert (progress["step"], progress["total"], progress["metrics"]) == (4, 100, {"loss": "0.500"})
        told = json.loads(cluster.lws("explain", name, "-o", "json", code=4))
        assert told["items"][0]["code"] == "LWS-E076", told
        assert f"{name}-0-1 has no output for" in cluster.lws("get", name)


def test_hanging_group_is_recreated_if_enabled(cluster: LocalCluster) -> None:
    watched = {labels.PROGRESS_TIMEOUT: "2s", labels.ON_HANG: "recreate"}
    cluster.apply(team("again", TRAIN, watched, "sleep"))
    view = cluster.until("again", lambda view: bool(view["groups"][0]["recreations"]))
    told = view["groups"][0]["recreations"]
    assert (told["failedPod"], told["failure"]) == ("again-0-1", "no progress for 2 s, waits for a timer (sleep)")
    until(lambda: "no progress for 2 s" in cluster.lws("history", "again"), "the record of the failure", poll=SELDOM)


def test_progress_bar_and_remaining_time_are_shown(cluster: LocalCluster) -> None:
    cluster.apply(team("bar", TRAIN, {labels.FOLLOW_PROGRESS: "true"}, "sleep"))
    view = cluster.until("bar", lambda view: view["groups"][0].get("progress", {}).get("step") == 4)
    assert view["groups"][0]["progress"]["rate"] > 0
    shown = cluster.lws("get", "bar")
    assert "group 0: [--------------------] step 4 of 100 (4 %), loss 0.500, " in shown
    assert shown.rstrip().endswith("remaining")


def test_progress_file_is_followed_by_a_sidecar(cluster: LocalCluster) -> None:
    cluster.lws("apply", "-f", str(ROOT / "docs/how-to/progress/file.yaml"))
    view = cluster.until("file", lambda view: view["groups"][0].get("progress", {}).get("step", 0) > 1)
    assert view["groups"][0]["progress"]["total"] == 5
    assert cluster.lws("wait", "file", "--for=done", "--timeout=30s") == "file is complete\n"
    assert cluster.view("file")["groups"][0]["progress"]["step"] == 5


def test_completed_run_is_not_started_again(cluster: LocalCluster) -> None:
    cluster.apply(team("finished", FINISH, {labels.RUN_TO_COMPLETION: "true"}, replicas=2))
    assert cluster.lws("wait", "finished", "--for=done", "--timeout=30s") == "finished is complete\n"
    assert "saved the model" in cluster.lws("logs", "finished/0/0", "--previous")
    assert "saved the model" in cluster.lws("logs", "finished/1/0", "--previous")
    assert "1/0 ::lws progress step=1" in cluster.lws("logs", "finished", "--follow")
    view = cluster.view("finished")
    assert [group["end"] for group in view["groups"]] == ["Complete", "Complete"]
    assert "finished is complete: 2 of 2 groups complete after " in cluster.lws("explain", "finished")


def test_early_ranks_are_not_an_error_of_run_until_done(shell: Shell) -> None:
    """The second group runs for longer than the time until the first diagnosis."""
    script = f"if [ $LWS_GROUP_INDEX = 1 ]; then sleep {FIRST + 3}; fi; echo finished"
    batch = json.dumps(lws("batch", shell_script(script), replicas=2, size=2))
    told = shell.lws("run", "-", "--until=done", "--fail-fast", "--timeout=120", text=batch).stderr
    assert "stuck" not in told
    assert told.splitlines()[-1] == "4 ranks in 2 groups exited with code 0"


def test_run_timeout_names_the_running_ranks(shell: Shell) -> None:
    script = "if [ $LWS_WORKER_INDEX = 1 ]; then exec sleep 1000; fi"
    hanging = json.dumps(lws("hanging", shell_script(script, grace=1), size=2))
    told = shell.lws("run", "-", "--until=done", "--timeout=20", text=hanging, code=124).stderr
    error = "error: not all LeaderWorkerSets were done after 20 s: hanging: 1 of 2 ranks exited with code 0; not complete: 0/1 (Running)"
    assert error in told.splitlines()


def test_run_until_done_ends_with_the_leaders_of_a_job(shell: Shell) -> None:
    manifest = team("job", FINISH, {labels.RUN_TO_COMPLETION: "true", labels.FOLLOW_PROGRESS: "true"})
    done = shell.lws("run", "-", "--until=done", "--timeout=60", text=json.dumps(manifest))
    assert "saved the model" in done.stdout
    assert "1 group" in done.stderr
    shell.assert_nothing_is_left()
