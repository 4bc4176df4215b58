"""Tests that the cause of fifteen failing programs is always found, and that suggested commands work."""

import asyncio
import io
import json
import re
import shlex
import stat
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from tests.e2e.harness import SLEEP, LocalCluster, Shell, lws, python, shell_script
from tests.e2e.terminals import terminal
from tests.explanations.ways import ASKS_LEADER, WAYS

from kuberuntime.access import kubeconfig
from kuberuntime.client.client import Client
from kuberuntime.client.http import HTTPTransport
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import labels
from lwsctl.cli import app

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

MOMENTS: Final = 4
"""The minimum number of states in which a restarting program is explained."""

STEADY: Final = frozenset({"absent", "never", "deadlock", "config", "mode", "gpus"})
"""Programs that are not restarted or never start. They soon reach their last state."""

LIMIT: Final = 120.0
"""The timeout for all states, in seconds."""

PAUSE: Final = 0.05
"""The interval between two checks of the pods, in seconds."""

COLUMNS, LINES = 80, 24

SUGGESTED: Final = re.compile(r"(?:^|: )(lws --local=\S+ -n \S+ .*)$")
CHANGES: Final = frozenset({"restart", "recover", "exec", "wait"})
"""Commands that change the observed state, or that wait for a change."""

BINDS_TWICE: Final = """
import socket
first = socket.create_server(("0.0.0.0", 8000))
second = socket.socket()
second.bind(("0.0.0.0", 8000))
"""


class Failing(NamedTuple):
    """A failing program, with its LeaderWorkerSet, and parts of the expected cause and next step."""

    obj: JSONObject
    words: str
    step: str

    @property
    def name(self) -> str:
        """Return the name of the LeaderWorkerSet."""
        return str(self.obj["metadata"]["name"])


def _known(name: str, words: str = "") -> Failing:
    """Return a program that fails in one particular way."""
    way = next(one for one in WAYS if one.name == name)
    return Failing(way.obj, words or way.sentence, way.step)


def _stuck(name: str) -> JSONObject:
    """Return a group whose leader reports one step of progress, and then waits forever."""
    obj = lws(
        name, python("import time; print('::lws progress step=1 total=9', flush=True); time.sleep(1000)", grace=1)
    )
    obj["metadata"]["annotations"] = {labels.FOLLOW_PROGRESS: "true", labels.PROGRESS_TIMEOUT: "5s"}
    return obj


def _read_only(name: str) -> JSONObject:
    mounts = [{"name": "data", "mountPath": "/data", "readOnly": True}]
    obj = lws(name, shell_script("echo step > /data/out", volumeMounts=mounts))
    obj["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["volumes"] = [{"name": "data", "emptyDir": {}}]
    return obj


def programs(directory: Path) -> list[Failing]:
    """Return the fifteen programs. Create a file without execute permission in the directory."""
    script = directory / "start.sh"
    script.write_text("#!/bin/sh\nsleep 1000\n")
    script.chmod(stat.S_IRUSR | stat.S_IWUSR)
    never = SLEEP | {"readinessProbe": ASKS_LEADER}
    slow = SLEEP | {"startupProbe": {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 2}}
    unmapped = {"image": "image.example/app:1", "command": ["python3", "serve.py"]}
    return [
        _known("absent"),
        Failing(lws("module", python("import no_such_engine")), "No module named 'no_such_engine'", "logs module/0/0"),
        Failing(lws("port", python(BINDS_TWICE)), "Address already in use", "logs port/0/0"),
        _known("killed", "exit code 137"),
        Failing(lws("never", never), "the readiness probe of pod never-0 fails", "logs never/0/0"),
        _known("init", "exit code 2"),
        Failing(_stuck("deadlock"), "no progress", "logs deadlock/0/0"),
        Failing(_read_only("volume"), "Read-only file system", "logs volume/0/0"),
        _known("config"),
        Failing(lws("unmapped", unmapped), "can't open file", "map the image with --image image.example/app:1=DIR"),
        _known("raises", "KeyError: 'rank'"),
        Failing(lws("mode", {"command": [str(script)]}), f"{script} is not executable", "describe mode/0/0"),
        _known("ends", "exit code 0"),
        Failing(lws("startup", slow), "startup probe", "startup/0/0"),
        _known("gpus"),
    ]


def test_failing_programs_have_correct_causes_at_every_moment(
    cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = programs(tmp_path)
    assert len(failing) == 15
    cluster.apply(*(one.obj for one in failing))
    for name, value in cluster.shell.environment.items():
        monkeypatch.setenv(name, value)
    moments, wrong = observe(cluster, failing)
    assert wrong == []
    assert is_enough(moments), " ".join(f"{name}={count}" for name, count in moments.items())
    assert [text for one in failing if (text := unseen(cluster, one))] == []


def observe(cluster: LocalCluster, failing: Sequence[Failing]) -> tuple[dict[str, int], list[str]]:
    """Explain each program after its cause was found and its pods changed.

    Return the number of explanations, and the errors.
    """
    moments = dict.fromkeys((one.name for one in failing), 0)
    seen: dict[str, frozenset[str]] = {}
    wrong: list[str] = []
    began = time.monotonic()
    while not is_enough(moments) and time.monotonic() - began < LIMIT:
        now = asyncio.run(states(cluster))
        for one in failing:
            if moments[one.name] and now[one.name] == seen[one.name]:
                continue
            found = faults(cluster, one)
            if found and not moments[one.name]:
                continue
            seen[one.name] = now[one.name]
            moments[one.name] += 1
            wrong += found
        time.sleep(PAUSE)
    return moments, wrong


def is_enough(moments: Mapping[str, int]) -> bool:
    """Return whether each program was explained in all its states."""
    return all(count >= (1 if name in STEADY else MOMENTS) for name, count in moments.items())


async def states(cluster: LocalCluster) -> dict[str, frozenset[str]]:
    """Return the pods of each program by UID and resourceVersion, which together identify a state."""
    place = cluster.shell.state / cluster.name / "kubeconfig"
    client = Client(HTTPTransport(kubeconfig.load({}, kubeconfig=str(place)), user_agent="tests"))
    try:
        pods = (await client.list(PODS, namespace="default")).items
    finally:
        await client.close()
    found: defaultdict[str, set[str]] = defaultdict(set)
    for pod in pods:
        found[meta.labels(pod)[labels.NAME]].add(f"{meta.uid(pod)} {meta.resource_version(pod)}")
    return defaultdict(frozenset, {name: frozenset(pods) for name, pods in found.items()})


def ended(cluster: LocalCluster, *words: str) -> tuple[int, str]:
    """Run `lws` in this process until it exits. Return its exit code and its output.

    A new process would import for 0.3 s each time.
    """
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        code = app.run([*words, *([] if words[0].startswith("--local") else [f"--local={cluster.name}"])])
    return code, printed.getvalue()


def unseen(cluster: LocalCluster, one: Failing) -> str:
    """Return the first screen if it does not contain the cause or the next step."""
    with terminal(cluster.shell, "explain", f"--local={cluster.name}", one.name, columns=COLUMNS) as screen:
        screen.end()
    rows = [line[at : at + COLUMNS] for line in screen.screen() for at in range(0, max(len(line), 1), COLUMNS)]
    shown = rows[:LINES]
    text = "".join("".join(shown).split())
    is_there = all("".join(words.split()) in text for words in (one.name, one.words, "Next:", one.step))
    return "" if is_there else "\n".join((one.name, *shown))


def faults(cluster: LocalCluster, one: Failing) -> list[str]:
    """Return the errors in the explanation of a program in this state."""
    _, text = ended(cluster, "explain", one.name)
    steps = text.partition("\nNext:\n")[2].partition("\n\n")[0].splitlines()
    found = [] if one.words in text else [f"{one.name}: not {one.words!r}: {text}"]
    # A restarted process is briefly ready before it fails. The only possible step is then to wait.
    is_due = any(one.step in step for step in steps) or "ready; all pods are ready" in text
    found += [] if is_due else [f"{one.name}: no step {one.step!r}: {text}"]
    for match in filter(None, (SUGGESTED.search(step.strip()) for step in steps)):
        words = shlex.split(match[1])[1:]
        if words[3] in CHANGES:
            continue
        code, printed = ended(cluster, *words)
        if code:
            found.append(f"{one.name}: {match[1]} ended with {code}: {printed}{text}")
    return found


def test_failed_run_keeps_a_record_for_its_suggested_command(shell: Shell, tmp_path: Path) -> None:
    """The cluster of the run no longer exists when a user enters the command."""
    manifest = tmp_path / "module.json"
    manifest.write_text(json.dumps(lws("module", python("import no_such_engine"))))
    with terminal(shell, "run", "-f", str(manifest), "--stuck-after=1", columns=400) as screen:
        assert screen.end(120) == 1
        shown = [line for line in screen.screen() if line]
    (step,) = {line.removeprefix("next: ") for line in shown if line.startswith("next: ")}
    assert "No module named 'no_such_engine'" in shell.lws(*shlex.split(step)[1:]).stdout
    (recorded,) = [line for line in shown if "history` to show the recorded failures" in line]
    assert "module/0#1" in shell.lws(*shlex.split(recorded.split("`")[1])[1:]).stdout
