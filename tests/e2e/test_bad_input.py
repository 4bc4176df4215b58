"""Tests that invalid input causes one message with the location and the solution, and does not change data."""

import json
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests import manifesterrors
from tests.e2e.harness import SLEEP, LocalCluster, Shell, lws

from kuberuntime.objects.meta import JSONObject

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]


def changed(path: str, value: object) -> JSONObject:
    """Return a valid manifest in which one field was changed or added."""
    manifest = lws("web", SLEEP)
    target = manifest
    *parents, last = path.split(".")
    for parent in parents:
        target = target.setdefault(parent, {})
    target[last] = value
    return manifest


TEMPLATE = "spec.leaderWorkerTemplate"


INVALID = [
    ("spec.replica", 2, [".spec.replica: ", "unknown field"]),
    (f"{TEMPLATE}.sise", 2, [f".{TEMPLATE}.sise: ", "unknown field"]),
    (f"{TEMPLATE}.workerTemplate.spec.containrs", [], ["unknown field", ".spec.containrs: "]),
    ("spec.replicas", "two", ["spec.replicas", '"two"']),
    ("spec.replicas", -1, ["spec.replicas", "-1", "greater than or equal to 0"]),
    (f"{TEMPLATE}.size", 0, [f"{TEMPLATE}.size", "0"]),
    ("spec.startupPolicy", "Sometime", ["spec.startupPolicy", '"Sometime"', "LeaderReady"]),
    ("metadata.name", "Web_1", ["metadata.name", "Web_1"]),
    (
        "spec.rolloutStrategy",
        {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxUnavailable": "120%"}},
        ["spec.rolloutStrategy.rollingUpdateConfiguration.maxUnavailable", "120%"],
    ),
]
"""Manifest paths with an invalid value, and the expected parts of the error message."""


def test_invalid_fields_are_named_with_lines_and_values(cluster: LocalCluster, tmp_path: Path) -> None:
    for number, (path, value, _) in enumerate(INVALID):
        (tmp_path / f"{number}.yaml").write_text(yaml.safe_dump(changed(path, value), sort_keys=False))
    text = cluster.refused("apply", "-f", str(tmp_path))
    assert text.endswith("no objects were applied\n")
    for number, (path, _, words) in enumerate(INVALID):
        file = tmp_path / f"{number}.yaml"
        (line,) = (line for line in text.splitlines() if f"{file}:" in line)
        place, _, message = line.removeprefix("error: ").partition(": ")
        named = file.read_text().splitlines()[int(place.rpartition(":")[2]) - 1]
        assert named.strip().split(":")[0] in f"{path} {words[0]}", line
        assert message.startswith("leaderworkerset/")
        assert [word for word in words if word not in message] == [], path


def of_errors(errors: list[tuple[str, Any, str]], directory: Path) -> list[tuple[str, str, str]]:
    """Write a manifest for each error. Return its file, the location in its messages, and the message."""
    directory.mkdir()
    expected = []
    for number, (path, value, text) in enumerate(errors):
        file = directory / f"{number:02}.yaml"
        obj = manifesterrors.changed(path, value)
        file.write_text(manifesterrors.text_of(obj))
        line = manifesterrors.line_of(obj, manifesterrors.NAMED.get(text, path))
        expected.append((str(file), f"{file}:{line}: leaderworkerset/", text))
    return expected


def not_named(expected: list[tuple[str, str, str]], output: str) -> list[str]:
    """Return the expected locations that no message contains, and the messages for their files."""
    lines = output.splitlines()
    missing = [(file, place) for file, place, _ in expected if not any(place in line for line in lines)]
    return [f"{place} {[line for line in lines if file in line]}" for file, place in missing]


def test_sixty_errors_are_named_by_apply_with_fields_and_lines(cluster: LocalCluster, tmp_path: Path) -> None:
    """Fields that the API server rejects, and values that it stores although no pod can run with them."""
    refused = of_errors(manifesterrors.REFUSED, tmp_path / "refused")
    output = cluster.refused("apply", "-f", str(tmp_path / "refused"))
    assert output.endswith("no objects were applied\n")
    assert not not_named(refused, output), "\n".join(not_named(refused, output))
    warned = of_errors(manifesterrors.WARNED, tmp_path / "warned")
    words = ["apply", "--dry-run", f"--local={cluster.name}", "-f", str(tmp_path / "warned")]
    output = cluster.shell.lws(*words).stderr
    assert not not_named(warned, output), "\n".join(not_named(warned, output))
    assert len(refused) + len(warned) >= 60


def test_one_invalid_document_prevents_the_whole_apply(cluster: LocalCluster, tmp_path: Path) -> None:
    documents = [lws("first", SLEEP), changed("spec.replicas", -1), lws("third", SLEEP), changed("spec.nonsense", 1)]
    manifest = tmp_path / "several.yaml"
    manifest.write_text(yaml.safe_dump_all(documents))
    told = cluster.refused("apply", "-f", str(manifest))
    assert told.count(f"{manifest}:") == 2
    assert "leaderworkerset/first" not in told
    assert told.endswith("no objects were applied\n")
    assert cluster.lws("get") == ""


def test_warning_of_a_template_has_the_line_of_the_field(cluster: LocalCluster, tmp_path: Path) -> None:
    manifest = tmp_path / "warned.yaml"
    text = yaml.safe_dump(changed("spec.replicas", 0), sort_keys=False)
    manifest.write_text(text.replace("name: rank", "name: rank_1"))
    line = next(number for number, line in enumerate(manifest.read_text().splitlines(), 1) if "rank_1" in line)
    for command in (["apply", "--dry-run"], ["plan"], ["apply"]):
        told = cluster.shell.lws(*command, f"--local={cluster.name}", "-f", str(manifest)).stderr
        assert f"Warning: {manifest}:{line}: leaderworkerset/web: spec.leaderWorkerTemplate." in told


def test_malformed_manifest_is_reported_with_its_line(cluster: LocalCluster, tmp_path: Path) -> None:
    manifest = tmp_path / "bad.yaml"
    manifest.write_text("a: 1\na: 2\n")
    message = cluster.refused("apply", "-f", str(manifest))
    assert message == f"error: {manifest}:2: invalid YAML: key 'a' is already defined in line 1\n"


def kubeconfig_of(cluster: LocalCluster, tmp_path: Path, **changes: str) -> str:
    """Write the kubeconfig of the cluster with different cluster values (server) or user values (token)."""
    config = yaml.safe_load((cluster.shell.state / cluster.name / "kubeconfig").read_text())
    for key, value in changes.items():
        config["clusters" if key == "server" else "users"][0]["cluster" if key == "server" else "user"][key] = value
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return str(path)


def test_unreachable_server_is_named(cluster: LocalCluster, tmp_path: Path) -> None:
    config = kubeconfig_of(cluster, tmp_path, server="https://127.0.0.1:1")
    told = cluster.shell.lws("get", "--kubeconfig", config, code=1).stderr
    assert told.startswith("error: ")
    assert "127.0.0.1:1" in told
    assert told.count("\n") == 1


def test_invalid_token_is_reported(cluster: LocalCluster, tmp_path: Path) -> None:
    config = kubeconfig_of(cluster, tmp_path, token="an-expired-one")
    told = cluster.shell.lws("get", "--kubeconfig", config, code=1).stderr
    assert "Unauthorized" in told
    assert told.count("\n") == 1


def test_port_in_use_is_reported_and_leaves_nothing(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = shell.lws("up", "--port", str(port), code=1).stderr
        assert f"127.0.0.1:{port}" in told
        assert "in use" in told
        assert f"127.0.0.1:{port}" in shell.lws("up", "--detach", "--port", str(port), code=1).stderr
    shell.lws("down", "--delete")
    shell.assert_nothing_is_left()


def test_second_cluster_with_the_same_name_is_rejected(cluster: LocalCluster) -> None:
    told = cluster.shell.lws("up", cluster.name, code=1).stderr
    assert f"cluster {cluster.name} is already running (process " in told
    assert "is already running" in cluster.shell.lws("up", cluster.name, "--detach").stdout


def test_damaged_database_is_rejected_unchanged_until_deleted(shell: Shell) -> None:
    shell.lws("up", "--detach")
    LocalCluster(shell, "default").apply(lws("web", SLEEP, replicas=0))
    shell.lws("down")
    database = shell.state / "default" / "state.db"
    whole = database.read_bytes()
    overwritten = whole[:100] + b"\xff" * (len(whole) - 100)
    for broken in (overwritten, b"not a database at all" * 100, whole[: len(whole) // 2]):
        database.write_bytes(broken)
        message = shell.lws("up", code=1).stderr
        assert f"error: {database}: " in message
        assert "use `lws down default --delete` to delete the cluster, and then restart it" in message
        assert "Traceback" not in message
        assert database.read_bytes() == broken
    shell.lws("down", "--delete")
    shell.lws("up", "--detach")
    LocalCluster(shell, "default").apply(lws("web", SLEEP, replicas=0))
    assert LocalCluster(shell, "default").view("web")["desired"] == 0


def test_database_locked_by_another_program_is_reported(shell: Shell) -> None:
    shell.lws("up", "--detach")
    shell.lws("down")
    database = shell.state / "default" / "state.db"
    hold = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute('BEGIN EXCLUSIVE'); print('held', flush=True); input()"
    with subprocess.Popen(
        ["python3", "-c", hold, str(database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        told = shell.lws("up", code=1).stderr
        holder.communicate("\n", timeout=10)
    assert f"{database}: database is locked. Close the process that uses the file" in told
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--node-label", "rack=r{i**i}"], "--node-label: Invalid value: 'rack=r{i**i}'"),
        (["--nodes", "3", "--node-label", "rack=r{4//(2-i)}"], "division by zero for node 2"),
        (["--node-taint", "pool=gpu"], "--node-taint: Invalid value: 'pool=gpu': must have the form"),
        (["--node-capacity", "mem=4Gi"], "--node-capacity: Invalid value: 'mem=4Gi': unknown resource 'mem'"),
    ],
)
def test_invalid_nodes_are_reported_before_any_change(shell: Shell, words: list[str], message: str) -> None:
    result = shell.ended("up", *words)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    shell.assert_nothing_is_left()


def test_timeout_reports_what_is_missing_and_exits_with_124(shell: Shell, tmp_path: Path) -> None:
    manifest = tmp_path / "lws.json"
    image_only = {"image": "vllm/vllm-openai:latest"}
    manifest.write_text(json.dumps(lws("web", {**image_only, "command": ["no-such-program"]}, size=2)))
    told = shell.lws("run", "-f", str(manifest), "--until", "ready", "--timeout", "2", code=124).stderr
    error, cause = told.splitlines()[-2:]
    assert error.startswith("error: not all LeaderWorkerSets were ready after 2 s: web: 0 of 1 group ready")
    assert "no-such-program" in error
    assert cause.startswith("web is stuck (LWS-E"), told
    shell.assert_nothing_is_left()


def test_repeatedly_failing_run_ends_with_the_reason(shell: Shell, tmp_path: Path) -> None:
    manifest = tmp_path / "lws.json"
    failing = {"command": ["sh", "-c", "exit 3"], "grace": 0}
    manifest.write_text(json.dumps(lws("web", failing, restart="None")))
    told = shell.lws("run", "-f", str(manifest), "--until", "done", "--max-failures", "1", code=1).stderr
    assert told.splitlines()[-1] == "error: web/0/0 failed 2 times, last with exit code 3 (Error)"
    shell.assert_nothing_is_left()


@pytest.mark.parametrize("restart", ["None", "RecreateGroupOnPodRestart"])
def test_last_lines_of_an_early_crash_are_shown(shell: Shell, tmp_path: Path, restart: str) -> None:
    """The log and the final error contain the lines, even if the group was recreated."""
    manifest = tmp_path / "lws.json"
    failing = {"command": ["sh", "-c", "echo boom $(cat /proc/sys/kernel/random/uuid) >&2; exit 3"], "grace": 0}
    manifest.write_text(json.dumps(lws("web", failing, restart=restart)))
    done = shell.lws("run", "-f", str(manifest), "--until", "done", "--max-failures", "1", code=1)
    error, line = done.stderr.splitlines()[-2:]
    assert error == "error: web/0/0 failed 2 times, last with exit code 3 (Error):"
    assert line.startswith("  boom ")
    shown = [line for line in done.stdout.splitlines() if line.startswith("0/0 boom ")]
    assert len(set(shown)) == len(shown)  # each start is printed at most once, regardless of the number of starts
    assert shown or restart != "None"  # the log of a recreated pod is deleted, but its termination message is preserved
    shell.assert_nothing_is_left()
