"""Tests the exit codes, messages, option positions and start time of the command line."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from kuberuntime.errors import ConnectionFailedError
from kuberuntime.standardstreams import PIPE_CLOSED
from lwsctl.cli import app, errors, targets
from lwsctl.cli.cluster import clusterdirectories
from lwsctl.cli.local.clusteroptions import ClusterOptions, cluster_options, collect, parse_image
from lwsctl.views.selection import Selection


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--help"], 0, ""),
        (["get", "--help"], 0, ""),
        (["no-such-command"], 2, "No such command"),
        (["gett"], 2, "No such command 'gett', did you mean \"get\"?"),
        (["hlep"], 2, "No such command 'hlep', did you mean \"help\"?"),
        (["help", "gett"], 2, "No such command 'gett', did you mean \"get\"?"),
        (["help", "get", "web"], 2, "lws get has no subcommands; remove 'web'"),
        (["get", "--nmespace", "prod"], 2, "No such option '--nmespace'. Did you mean '--namespace'?"),
        (["rollout", "status", "web", "--kubecnfig=x"], 2, "Did you mean '--kubeconfig'?"),
        (["get", "--all-namespace"], 2, "Did you mean '--all-namespaces'?"),
        (["scale", "web"], 2, "--replicas"),
        (
            ["get", "--local=prod"],
            1,
            "the embedded cluster prod is not running (no cluster is running); use `lws up prod` to start it",
        ),
        (["up", "one", "--local=two"], 2, "cluster one and --local=two select different clusters; specify only one"),
        (["down", "one", "--all"], 2, "--all stops all clusters, and cannot be combined with a name"),
        (["clusters", "--context", "x"], 2, "remove -n, --kubeconfig and --context"),
        (["get", "web/x"], 2, "is not a valid path"),
        (["apply", "-f", "/no/such/file.yaml"], 1, "/no/such/file.yaml: no such file or directory"),
        (["get", "--kubeconfig", "/no/such/config"], 1, "/no/such/config"),
        (["get", "--local=never-started"], 1, "is not running"),
        (["get", "--local", "--context", "x"], 2, "remove"),
        (["delete"], 2, "specify either names, or manifests"),
        (["get", "-nprod", "--local=one", "-o=view", "--not-ready"], 1, "the embedded cluster one is not running"),
        (["get", "web", "-o", "json", "-n=prod", "--local=one"], 1, "the embedded cluster one is not running"),
        (["logs", "web", "--grep", "--local", "--kubeconfig=/no/such/config"], 1, "/no/such/config"),
        (["rollout", "status", "web", "-o", "--local", "--local=one"], 2, "'--local' is not 'json'"),
        (["wait", "web", "--for", "x"], 2, "--for=x"),
        (["run", "-f", "no-such-file.yaml"], 1, "no-such-file.yaml: no such file or directory"),
        (["run", "-f", __file__, "--timeout", "5"], 2, "--timeout requires --until"),
        (["up", "--image", "a=/no/such/directory"], 2, "/no/such/directory is not a directory"),
        (["up", "Upper"], 2, "cluster name"),
        (["down", "no/path"], 2, "cluster name"),
        (["get", "--local", "-o", "xml"], 2, "'xml' is not one of"),
        (["get", "--local", "-w", "-o", "name"], 2, "--watch"),
        (["logs", "--local", "web", "--since", "soon"], 2, "--since"),
    ],
)
def test_command_exits_with_a_code_and_a_message(
    words: list[str],
    code: int,
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LWS_STATE_HOME", str(tmp_path))
    assert app.run(words) == code
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [[], ["get"], ["rollout", "undo"]])
def test_help_prints_what_the_option_prints(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run([*words, "--help"]) == 0
    printed = capsys.readouterr().out
    assert app.run(["help", *words]) == 0
    assert capsys.readouterr().out == printed


def test_error_in_a_task_group_is_one_message(capsys: pytest.CaptureFixture[str]) -> None:
    error = ExceptionGroup("tasks", [ExceptionGroup("inner", [ConnectionFailedError("no answer from 127.0.0.1:1")])])
    assert app.report(error) == errors.FAILED
    assert capsys.readouterr().err == "error: no answer from 127.0.0.1:1\n"


def test_errors_of_several_tasks_are_one_message_each(capsys: pytest.CaptureFixture[str]) -> None:
    full = OSError(errno.ENOSPC, "No space left on device", "/state/lock")
    several = ExceptionGroup(
        "tasks", [errors.TimedOutError("too late"), ConnectionFailedError("no answer"), full, full]
    )
    assert app.report(several) == errors.TIMED_OUT
    told = "error: too late\nerror: no answer\nerror: /state/lock: No space left on device\n"
    assert capsys.readouterr().err == told


LWS = f"{sys.executable} -m lwsctl.cli"


@pytest.mark.parametrize(
    ("command", "code", "told"),
    [
        (f"{LWS} version >&-", 1, "error: standard output: Bad file descriptor\n"),
        (f"{LWS} version > /dev/full", 1, "No space left on device\n"),
        (f"{LWS} version 2>&-", 0, ""),
        (f"{LWS} scale web 2>&-", 2, ""),
        (f"{LWS} apply -f - <&-", 1, "error: no objects in standard input; a manifest requires apiVersion, kind and metadata.name\n"),
        (f"printf 'a: \\377' | {LWS} apply -f -", 1, "error: standard input:1: invalid YAML: invalid UTF-8 at byte 3\n"),
        (f"PYTHONIOENCODING=ascii {LWS} down ü", 2, "error: cluster name: Invalid value: "),
    ],
    ids=["closed", "full", "no errors", "nowhere to say it", "no input", "not text", "ascii"],
)  # fmt: skip
@pytest.mark.slow
def test_broken_streams_end_a_command_with_one_message(command: str, code: int, told: str) -> None:
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == code
    assert told in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stderr.count("\n") <= 1


@pytest.mark.parametrize(
    ("words", "unread"),
    [
        (["get", "--help"], "stdout"),
        (["version"], "stdout"),
        (["scale", "web"], "stderr"),
        (["get", "--kubeconfig=/no/such/config"], "stderr"),
    ],
    ids=lambda given: given if isinstance(given, str) else " ".join(given),
)
@pytest.mark.slow
def test_closed_output_ends_a_command_quietly(words: list[str], unread: str, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    pipes: dict[str, int] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | {unread: writing}
    command = [sys.executable, "-m", "lwsctl.cli", *words]
    environment = os.environ | {"LWS_STATE_HOME": str(tmp_path)}
    result = subprocess.run(command, **pipes, env=environment, text=True, check=False, timeout=60)  # type: ignore[call-overload]
    os.close(writing)
    assert result.returncode == PIPE_CLOSED
    assert (result.stdout or "", result.stderr or "") == ("", "")


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
def test_closed_output_in_a_task_ends_the_command_quietly(unbuffered: str) -> None:
    script = (
        "import click; from kuberuntime import standardstreams; from lwsctl.cli import app; standardstreams.open_missing_streams()\n"
        "try:\n    click.echo('a line')\n"
        "except OSError as error:\n    raise SystemExit(app.report(ExceptionGroup('of tasks', [error])))"
    )
    reading, writing = os.pipe()
    os.close(reading)
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    command = [sys.executable, "-c", script]
    result = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, env=environment, check=False, timeout=60)
    os.close(writing)
    assert (result.returncode, result.stderr) == (PIPE_CLOSED, b"")


def test_broken_connection_is_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    assert app.report(BrokenPipeError(32, "Broken pipe")) == errors.FAILED
    assert capfd.readouterr().err == "error: Broken pipe\n"


def test_unexpected_exceptions_are_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        app.report(ZeroDivisionError())


@pytest.mark.slow
def test_table_does_not_import_modules_of_watches() -> None:
    parts = "commands.get, lwsctl.cli.commands.inspect.tree, lwsctl.cli.cluster.target"
    script = f"import sys, lwsctl.cli.{parts}, kuberuntime.client.http; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert not {"structlog", "rich", "cryptography", "kuberuntime.cache.informer"} & set(modules.split())


HEAVY = {"structlog", "rich", "pygments", "cryptography", "aiohttp", "sqlite3", "localkube"}

STEPS = [
    ("--help", {"lwsctl.cli.commands", "yaml", "msgspec", "asyncio", *HEAVY}),
    ("version", {"lwsctl.cli.cluster.target", "msgspec", "asyncio", *HEAVY}),
    ("completion bash", {"lwsctl.cli.cluster.target", "msgspec", "asyncio", *HEAVY}),
    ("apply --help", HEAVY),
    ("scale --help", HEAVY),
    ("explain --help", HEAVY),
    ("run --help", HEAVY - {"structlog"}),
    ("manager --help", {"rich", "pygments", "localkube"}),
]
"""The modules that this command and all commands before it do not import."""


@pytest.mark.slow
def test_command_imports_only_its_own_modules() -> None:
    script = (
        "import sys; from lwsctl.cli.app import run\n"
        f"for words in {[words for words, _ in STEPS]}: run(words.split()); print(*sys.modules, file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    for (words, absent), modules in zip(STEPS, result.stderr.splitlines(), strict=True):
        assert not absent & set(modules.split()), words


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        ("web", Selection("web")),
        ("web/0", Selection("web", 0)),
        ("web/0/3", Selection("web", 0, 3)),
        ("lws/web", Selection("web")),
        ("lws/0", Selection("lws", 0)),
        ("leaderworkersets/web/1", Selection("web", 1)),
    ],
)
def test_ranks_are_named_by_path(words: str, chosen: Selection) -> None:
    assert targets.parse(words) == chosen


def test_cluster_options_pass_to_another_process(tmp_path: Path) -> None:
    options = ClusterOptions(
        nodes=4,
        node_labels=("rack=r{i//2}", "zone=a"),
        node_taints=("pool=gpu:NoSchedule",),
        node_capacity=("cpu=8,memory=32Gi", "pods=20"),
        gpus_per_node=8,
        expose_gpus=True,
        ignore_memory_limits=True,
        network="shared",
        images=(("a", tmp_path),),
        stub=("missing", "all", "vllm/vllm-openai"),
        max_pods=70,
        port=1234,
        log_level="debug",
        log_format="json",
    )

    @click.command()
    @cluster_options
    def command(**words: Any) -> None:
        assert collect(words) == options

    command.main(options.arguments(), standalone_mode=False)


@pytest.mark.parametrize("words", ["a", "=x", "a=", "a=/no/such/directory"])
def test_invalid_images_are_rejected(words: str) -> None:
    with pytest.raises(errors.UsageError, match="--image"):
        parse_image(words)


def test_version_option_equals_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["--version"]) == 0
    assert app.run(["version"]) == 0
    by_option, by_command = capsys.readouterr().out.splitlines()
    assert by_option == by_command


def test_local_option_without_an_equals_sign_is_noted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LWS_STATE_HOME", str(tmp_path))
    with clusterdirectories.cluster_directory("two").hold_lock():
        assert app.run(["get", "--local", "two"]) == errors.FAILED
        assert app.run(["get", "--local", "web"]) == errors.FAILED
    told = capsys.readouterr().err
    assert told.count("note: ") == 1
    assert "use `--local=two` to select the cluster two" in told
