"""Tests `lws history` with real processes. The record of a failed group is retained after its pods and cluster."""

import base64
import json
import os
import signal
from pathlib import Path

import pytest
from testkit.waiting import until
from tests.e2e.harness import SELDOM, LocalCluster, Shell, lws, python, shell_script

from kuberuntime.objects.meta import JSONObject

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

CRASH = "echo rank $LWS_WORKER_INDEX; if test $LWS_WORKER_INDEX = 1; then echo out of luck >&2; exit 3; fi; sleep 1000"


def episodes(cluster: LocalCluster, name: str) -> list[JSONObject]:
    """Return the records of `lws history -o json`."""
    found: list[JSONObject] = json.loads(cluster.lws("history", name, "-o", "json"))["items"]
    return found


def wait(cluster: LocalCluster, name: str, outcome: str) -> JSONObject:
    """Wait for episodes with this outcome. Return the first one."""
    found: list[JSONObject] = []

    def has_come() -> bool:
        found.extend(one for one in episodes(cluster, name) if one["outcome"] == outcome)
        return bool(found)

    until(has_come, f"{outcome} of {name}", poll=SELDOM)
    return found[0]


def logs(one: JSONObject, rank: int) -> list[list[str]]:
    """Return the logs of all runs of the container of a rank."""
    return next(found for found in one["ranks"] if found["rank"] == rank)["containers"][0]["logs"]  # type: ignore[no-any-return]


def test_recreated_group_is_listed_with_the_logs_of_all_ranks(cluster: LocalCluster, tmp_path: Path) -> None:
    assert cluster.lws("history", "fails") == ""
    cluster.apply(lws("fails", shell_script(CRASH, grace=1), size=2))
    one = wait(cluster, "fails", "recreated")
    assert (one["number"], one["group"], one["firstRank"], one["failedPod"]) == (1, "0", 1, "fails-0-1")
    assert one["failure"] == "rank: exit code 3, Error, last line: out of luck"
    assert one["revision"]["number"] == 1
    assert {rank["node"] for rank in one["ranks"]} == {"node-0"}
    assert logs(one, 0) == [["rank 0"]]
    assert logs(one, 1)[0] == ["rank 1", "out of luck"]
    assert any(event["reason"] == "RecreateGroup" for event in one["events"])
    listed = cluster.lws("history", "fails/0").splitlines()
    assert listed[0].split() == ["EPISODE", "AGE", "OUTCOME", "FIRST", "FAILURE"]
    assert listed[1].startswith("fails/0#1 ")
    shown = cluster.lws("history", "fails/0#1")
    assert "fails/0#1: group 0 was recreated" in shown
    assert "Log of rank 1 (fails-0-1, rank, run 1 of" in shown
    assert "failure fails/0#99 is not recorded" in cluster.refused("history", "fails/0#99")
    cluster.lws("must-gather", f"--dest-dir={tmp_path / 'gathered'}")
    folders = [tmp_path / "gathered", *(path for path in (tmp_path / "gathered").rglob("*") if path.is_dir())]
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o700}
    (gathered,) = (tmp_path / "gathered" / "history" / "default" / "fails" / "0").glob("1.json")
    assert json.loads(gathered.read_text())["failure"] == one["failure"]
    assert cluster.shell.lws(
        "history", "fails", f"--kubeconfig={cluster.shell.state / cluster.name / 'kubeconfig'}"
    ).stdout
    cluster.lws("delete", "fails")
    assert episodes(cluster, "fails")


def test_explain_shows_the_last_failure_without_pods(cluster: LocalCluster) -> None:
    cluster.apply(lws("told", shell_script(CRASH, grace=1), size=2))
    wait(cluster, "told", "recreated")
    cluster.lws("scale", "told", "--replicas=0")
    cluster.lws("wait", "told", "--for=replicas=0", "--timeout=30")
    cluster.apply(lws("told", {"command": ["sleep", "1000"], "resources": {"requests": {"cpu": "9k"}}}, size=2))
    shown = cluster.shell.lws("explain", f"--local={cluster.name}", "told", code=4).stdout
    assert "Last recorded failure: group 0 " in shown
    assert "  out of luck" in shown
    assert "history -n default told/0#" in shown


def test_exhausted_group_is_recorded(cluster: LocalCluster) -> None:
    obj = lws("spent", shell_script(CRASH, grace=1), size=2)
    obj["spec"]["leaderWorkerTemplate"]["maxGroupRestarts"] = 0
    cluster.apply(obj)
    one = wait(cluster, "spent", "exhausted")
    assert one["firstRank"] == 1
    assert logs(one, 1)[0] == ["rank 1", "out of luck"]


def test_failure_without_a_recreation_is_recorded(cluster: LocalCluster) -> None:
    cluster.apply(lws("alone", shell_script(CRASH, grace=1), size=2, restart="None"))
    one = wait(cluster, "alone", "failed")
    assert (one["firstRank"], one["failedPod"]) == (1, "alone-0-1")
    assert logs(one, 1)[0] == ["rank 1", "out of luck"]


def test_printed_secret_is_masked_with_a_note(cluster: LocalCluster) -> None:
    value = "correct horse battery"
    data = {"key": base64.b64encode(value.encode()).decode()}
    cluster.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "vault"}, "data": data})
    environment = [{"name": "WORDS", "valueFrom": {"secretKeyRef": {"name": "vault", "key": "key"}}}]
    cluster.apply(lws("leaks", shell_script('echo "it is $WORDS"; exit 1', grace=1, env=environment)))
    wait(cluster, "leaks", "recreated")
    shown = cluster.lws("history", "leaks/0#1")
    assert "it is [masked]" in shown
    assert "Note: values that look like secrets are replaced with [masked], " in shown
    kept = [path.read_text() for path in (cluster.shell.state / cluster.name / "history").rglob("*.json")]
    assert not [text for text in kept if value in text or data["key"] in text]


def test_last_lines_of_a_fast_printing_program_are_kept(cluster: LocalCluster) -> None:
    program = (
        "import time\nfor tick in range(20):\n    print(('x' * 99 + '\\n') * 10_000, end='')\n    time.sleep(0.1)\n"
        "print('the end', flush=True)\nraise SystemExit(9)"
    )
    cluster.apply(lws("loud", python(program, grace=1)))
    one = wait(cluster, "loud", "recreated")
    run = logs(one, 0)[0]
    assert len(run) == 200
    assert run[-1] == "the end"
    size = sum(path.stat().st_size for path in (cluster.shell.state / cluster.name / "history").rglob("*.json"))
    assert size < 4 * 1024 * 1024
    cluster.lws("delete", "loud")


def test_records_of_a_killed_cluster_stay_readable(shell: Shell) -> None:
    shell.lws("up", "short", "--detach")
    cluster = LocalCluster(shell, "short")
    cluster.apply(lws("fails", shell_script(CRASH, grace=1), replicas=3, size=2))
    wait(cluster, "fails", "recreated")
    os.kill(int((shell.state / "short" / "lock").read_text()), signal.SIGKILL)
    before = episodes(cluster, "fails")
    assert before[0]["failure"]
    assert "fails/" in cluster.lws("history", "-A")
    shell.lws("up", "short", "--detach")
    known = {(one["group"], one["number"]) for one in before}
    until(
        lambda: {(one["group"], one["number"]) for one in episodes(cluster, "fails")} > known,
        "another episode",
        seconds=90,  # the next recreations are delayed by the back-off
        poll=SELDOM,
    )
    again = {(one["group"], one["number"]): one for one in episodes(cluster, "fails")}
    assert [again[one["group"], one["number"]]["time"] for one in before] == [one["time"] for one in before]


def test_shutdown_of_a_cluster_is_not_a_failure(shell: Shell) -> None:
    shell.lws("up", "calm", "--detach")
    cluster = LocalCluster(shell, "calm")
    cluster.start(lws("sleeps", {"command": ["sleep", "1000"], "grace": 1}, size=2))
    shell.lws("down", "calm")
    shell.lws("up", "calm", "--detach")
    cluster.lws("wait", "sleeps", "--for=ready", "--timeout=30")
    assert episodes(cluster, "sleeps") == []


def test_unreadable_history_is_an_error(shell: Shell) -> None:
    assert "kubeconfig not found" in shell.lws("history", "web", code=1).stderr
    assert "cluster absent does not exist on this machine" in shell.lws("history", "--local=absent", code=1).stderr
    assert "is not a valid failure" in shell.lws("history", "web/0/x", "--local", code=2).stderr
    assert "cannot be combined with -A" in shell.lws("history", "web/0/1", "-A", "--local", code=2).stderr
