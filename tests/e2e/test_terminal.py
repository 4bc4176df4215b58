"""Tests output with and without a terminal."""

import json
import re
import shlex
import signal

import pytest
import yaml
from tests.e2e.harness import (
    LWS,
    SLEEP,
    LocalCluster,
    Shell,
    first_note,
    line_with,
    lines_with,
    lws,
    ranks,
    shell_script,
)
from tests.e2e.terminals import ANSI, terminal

from kuberuntime.standardstreams import PIPE_CLOSED

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

RUN = ["run", "-f", "examples/allreduce/lws.yaml", "--image", "allreduce=examples/allreduce", "--until", "done"]


def test_run_on_a_terminal_shows_a_table_below_colored_logs(shell: Shell) -> None:
    with terminal(shell, *RUN) as screen:
        assert screen.end() == 0
    shown = ANSI.sub("", screen.seen)
    assert re.search(r"NAME +READY +DESIRED +UP-TO-DATE +AGE", shown)
    assert re.search(r"1 +3 +allreduce-1-3 +completed", shown)
    assert "8 ranks in 2 groups exited with code 0" in shown
    assert re.search(r"\x1b\[\d+m1/3\x1b\[0m .*all-reduce verified", screen.seen)
    assert screen.seen.rindex("\x1b[?25h") > screen.seen.rindex("\x1b[?25l")  # the cursor is shown again
    shell.assert_nothing_is_left()


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["NO_COLOR", "dumb"])
def test_colors_can_be_disabled(shell: Shell, environment: dict[str, str]) -> None:
    with terminal(shell, *RUN, environment=environment) as screen:
        assert screen.end() == 0
    assert not re.search(r"\x1b\[\d*m", screen.seen)
    assert "1/3 all-reduce verified" in screen.seen


def test_output_without_a_terminal_is_plain_lines(shell: Shell) -> None:
    result = shell.lws(*RUN)
    assert "\x1b" not in result.stdout + result.stderr
    assert all(re.match(r"[01]/[0-3] ", line) for line in result.stdout.splitlines())
    assert "starting the API server" in result.stderr
    assert "leaderworkerset/allreduce created" in result.stderr
    assert "allreduce group 1: 4 ranks completed" in result.stderr


def test_run_stops_when_its_log_reader_stops(shell: Shell) -> None:
    manifest = json.dumps(lws("clock", shell_script("while :; do echo tick; sleep 0.1; done")))
    command = f"{shlex.join([*LWS, 'run', '-f', '-'])} | head -1; echo ${{PIPESTATUS[0]}}"
    result = shell.run(["bash", "-c", command], text=manifest)
    assert result.stdout == f"0/0 tick\n{PIPE_CLOSED}\n"
    assert "error" not in result.stderr
    shell.assert_nothing_is_left()


def test_run_that_cannot_print_logs_reports_it(shell: Shell) -> None:
    manifest = json.dumps(lws("clock", shell_script("while :; do echo tick; sleep 0.1; done")))
    result = shell.run(["bash", "-c", f"{shlex.join([*LWS, 'run', '-f', '-'])} > /dev/full"], code=1, text=manifest)
    assert "No space left on device" in result.stderr
    shell.assert_nothing_is_left()


def test_shell_in_a_rank_has_a_terminal_of_the_right_size(cluster: LocalCluster) -> None:
    cluster.start(lws("shells", SLEEP))
    with terminal(cluster.shell, "exec", f"--local={cluster.name}", "-it", "shells/0", "--", "sh") as screen:
        screen.type("stty size; hostname\n")
        screen.until(r"24 100\r\nshells-0\r\n")
        screen.resize(30, 120)
        screen.process.send_signal(signal.SIGWINCH)
        screen.type("until [ \"$(stty size)\" = '30 120' ]; do :; done; echo re''sized\n")
        screen.until("resized")
        screen.type("sh -c 'echo be\"\"gun; exec sleep 100'\n")
        screen.until("begun")
        screen.type("\x03")
        screen.until(r"\^C\r\n")
        screen.type("echo $((6 * 7))\n")
        screen.until(r"42\r\n")
        screen.type("exit 7\n")
        assert screen.end() == 7
    cluster.lws("delete", "shells")


def test_command_in_a_rank_has_input_and_exit_code(cluster: LocalCluster) -> None:
    cluster.start(lws("commands", SLEEP, size=2))
    assert cluster.lws("exec", "-i", "commands/0/1", "--", "tr", "a-z", "A-Z", text="hello\n") == "HELLO\n"
    assert cluster.refused("exec", "commands/0", "--", "sh", "-c", "echo oops >&2; exit 9", code=9) == "oops\n"
    assert "commands-0-1" in cluster.lws("exec", "commands/0/1", "-c", "rank", "--", "hostname")
    assert "no-such" in cluster.refused("exec", "commands/0", "-c", "no-such", "--", "true")
    assert "commands/7/0 has no pods; commands has 1 group of 2 ranks" in cluster.refused(
        "exec", "commands/7", "--", "true"
    )
    cluster.lws("delete", "commands")


COUNTER = """
n=$(cat /scratch/n || echo 0); n=$((n + 1)); echo $n > /scratch/n
echo run $n
until [ -e /scratch/end-$n ]; do sleep 0.05; done
sleep 1  # whoever made the file by exec has ended by then
echo end of run $n; exit 1
"""


def test_logs_follow_restarts_and_keep_the_previous_run(cluster: LocalCluster) -> None:
    counting = lws("counting", shell_script(COUNTER, grace=1), restart="None")
    pod = counting["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]
    pod["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    pod["containers"][0]["volumeMounts"] = [{"name": "scratch", "mountPath": "/scratch"}]
    cluster.apply(counting)
    with cluster.shell.running("logs", f"--local={cluster.name}", "-f", "counting") as follow:
        line_with(follow, "0/0 run 1")
        cluster.lws("exec", "counting/0", "--", "touch", "/scratch/end-1")
        assert lines_with(follow, "run", 2) == ["0/0 end of run 1", "0/0 run 2"]
    assert cluster.lws("logs", "counting/0/0") == "run 2\n"
    assert cluster.lws("logs", "counting/0/0", "--previous").endswith("run 1\nend of run 1\n")
    assert cluster.lws("logs", "counting", "--previous", "--tail=1") == "0/0 end of run 1\n"
    assert re.fullmatch(r"0/0 \d{4}-\d\d-\d\dT\S+Z run 2\n", cluster.lws("logs", "counting", "--timestamps"))
    assert cluster.lws("logs", "counting/0", "--since=1h") == "0/0 run 2\n"
    assert ranks(cluster.view("counting"))["0/0"]["restarts"] == 1
    cluster.lws("delete", "counting")


def test_logs_of_waiting_ranks_follow_after_the_start(cluster: LocalCluster) -> None:
    container = shell_script("echo here; sleep 1000", envFrom=[{"secretRef": {"name": "late"}}])
    cluster.apply(lws("waits", container, replicas=2))
    cluster.until(
        "waits", lambda view: all(one["state"] == "CreateContainerConfigError" for one in ranks(view).values())
    )
    why = 'no log yet (CreateContainerConfigError): rank: secret "late" not found\n'
    assert cluster.refused("logs", "waits") == f"error: waits-0 and 1 more pod have {why}"
    assert cluster.refused("logs", "waits/1/0") == f"error: waits-1 has {why}"
    assert "(existing: rank)" in cluster.refused("logs", "waits", "-f", "-c", "other")
    with cluster.shell.running("logs", f"--local={cluster.name}", "-f", "waits") as follow:
        assert first_note(follow) == f"note: waiting for logs: waits-0 and 1 more pod have {why.strip()}"
        cluster.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "late"}})
        assert set(lines_with(follow, "here", 2)) == {"0/0 here", "1/0 here"}
    cluster.lws("delete", "waits")


def test_sets_are_printed_in_every_format(cluster: LocalCluster) -> None:
    cluster.start(lws("forms", SLEEP, size=2))
    header, row = cluster.lws("get", "forms", "-o", "wide").splitlines()[3:5]
    titles = ["GROUP", "RANK", "POD", "STATE", "READY", "RESTARTS", "AGE", "NODE", "ADDRESS", "REVISION"]
    # usage is measured a short time after the start
    assert [title for title in header.split() if title not in ("CPU", "MEMORY")] == titles
    assert row.split()[:5] == ["0", "0", "forms-0", "Running", "yes"]
    assert cluster.lws("get", "-o", "name") == "leaderworkerset.leaderworkerset.x-k8s.io/forms\n"
    for yaml_form, json_form in (("yaml", "json"), ("view-yaml", "view")):
        assert yaml.safe_load(cluster.lws("get", "-o", yaml_form)) == json.loads(cluster.lws("get", "-o", json_form))
    assert json.loads(cluster.lws("get", "forms", "-o", "json"))["kind"] == "LeaderWorkerSet"
    assert json.loads(cluster.lws("get", "forms/0/1", "-o", "json"))["kind"] == "Pod"
    assert json.loads(cluster.lws("get", "-o", "view"))["kind"] == "LeaderWorkerSetViewList"
    assert len(cluster.lws("get", "forms/0/1").splitlines()) == 5
    assert "NAMESPACE" in cluster.lws("get", "-A").splitlines()[0]
    assert cluster.lws("get", "-l", "no=such") == ""
    assert "(existing: forms)" in cluster.refused("get", "other")
    cluster.lws("delete", "forms")


def test_cluster_is_selected_by_kubeconfig_context_and_namespace(cluster: LocalCluster) -> None:
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    cluster.lws("apply", "-n", "team", "-f", "-", text=json.dumps(lws("mine", SLEEP, replicas=0)))
    path = cluster.shell.state / cluster.name / "kubeconfig"
    context, config = yaml.safe_load(path.read_text())["current-context"], str(path)
    assert "mine" in cluster.shell.lws("-n", "team", "get", "--kubeconfig", config, "--context", context).stdout
    inside = Shell(cluster.shell.base, {**cluster.shell.environment, "KUBECONFIG": config})
    assert "mine" in inside.lws("get", "--namespace=team", "mine").stdout
    assert "No LeaderWorkerSets found" in inside.lws("get").stderr
    assert "no-such-context" in inside.lws("get", "--context=no-such-context", code=1).stderr


def test_watch_prints_changes_line_by_line(cluster: LocalCluster) -> None:
    cluster.start(lws("watched", SLEEP))
    with cluster.shell.running("get", f"--local={cluster.name}", "watched", "--watch") as watch:
        line_with(watch, "watched-0")
        cluster.lws("scale", "watched", "--replicas=2")
        assert "watched: READY 2, DESIRED 2, UP-TO-DATE 2" in line_with(watch, "READY 2")
        cluster.lws("delete", "watched")
        line_with(watch, "watched: deleted")


def test_watch_on_a_terminal_updates_a_table(cluster: LocalCluster) -> None:
    cluster.start(lws("table", SLEEP))
    with terminal(cluster.shell, "get", f"--local={cluster.name}", "table", "-w") as screen:
        screen.until("table-0 ")
        cluster.lws("scale", "table", "--replicas=2")
        screen.until(r"table-1 +Running +yes")
        screen.type("\x03")
        assert screen.end() == 130
    assert "Traceback" not in screen.seen
    cluster.lws("delete", "table")


def test_progress_is_shown_during_a_wait(cluster: LocalCluster) -> None:
    stuck = lws("stuck", {"command": ["no-such-program"]})
    cluster.apply(stuck)
    told = cluster.refused("wait", "stuck", "--timeout=1", code=124).splitlines()
    assert told[0].startswith("stuck: 0 of 1 group ready")
    error, cause, hint = told[-3:]
    assert 'program "no-such-program" is not installed' in error
    assert cause.startswith("stuck is stuck (LWS-E")
    assert hint.endswith("explain stuck` for details")
    cluster.lws("delete", "stuck")


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion_script_is_printed_for_each_shell(shell: Shell, name: str) -> None:
    assert "_LWS_COMPLETE" in shell.lws("completion", name).stdout


def test_bash_completes_commands_and_options(shell: Shell) -> None:
    typed = 'source <(lws completion bash); COMP_WORDS=(lws get --o); COMP_CWORD=2; _lws_completion lws; echo "${COMPREPLY[@]}"'
    assert shell.run(["bash", "-c", typed]).stdout == "--output\n"


def test_bash_completes_names_groups_and_ranks(cluster: LocalCluster) -> None:
    cluster.start(lws("completed", SLEEP))
    for word, offered in (("comp", "completed"), ("completed/", "completed/0"), ("completed/0/", "completed/0/0")):
        typed = (
            f"source <(lws completion bash); COMP_WORDS=(lws get --local={cluster.name} {word}); COMP_CWORD=3; "
            '_lws_completion lws; echo "${COMPREPLY[@]}"'
        )
        assert cluster.shell.run(["bash", "-c", typed]).stdout == f"{offered}\n"
    cluster.lws("delete", "completed")
