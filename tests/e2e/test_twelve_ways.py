"""Tests that a container which does not start is explained on the first screen and by each command."""

import json
import re
import time
from pathlib import Path

import pytest
from tests.e2e.harness import SLEEP, LocalCluster, Shell, lws, shell_script
from tests.e2e.terminals import terminal
from tests.explanations.ways import ASKS_LEADER, WAYS, Way

from lwsctl.diagnosis.catalogue import BY_CODE
from lwsctl.model.health import WORDS

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

ROWS = 24
"""The number of lines on the first screen."""

EVERY = 1.0
OVER = 60.0
"""The interval between two explanations of a crash loop, and the test duration, in seconds."""

SAMPLES = 6
"""The number of commands that run while a crash loop passes through all its states."""


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_broken_program_is_named_first_and_last(shell: Shell, tmp_path: Path, way: Way) -> None:
    manifest = tmp_path / "broken.json"
    manifest.write_text(json.dumps(way.obj))
    with terminal(shell, "run", "-f", str(manifest), "--stuck-after=4", columns=400) as screen:
        assert screen.end(120) == 1
        shown = [line for line in screen.screen() if line]
    verdict = f"{way.name} is {WORDS[BY_CODE[way.code].verdict]} ({way.code}): {way.sentence.removesuffix('…')}"
    first, last = "\n".join(shown[:ROWS]), shown[-1]
    assert verdict in first
    assert re.search(rf"^next: .*{re.escape(way.step)}", first, re.MULTILINE)
    assert "kubectl" not in first
    assert not re.search(r"^next: .*lws (?!--local=run-)", first, re.MULTILINE), "it addresses another cluster"
    assert last.startswith(f"error: {verdict}")


def test_crash_loop_has_one_diagnosis_in_all_commands(cluster: LocalCluster) -> None:
    """After the second recreation, the worker repeatedly loads and fails while the leader waits for it."""
    loads = shell_script("sleep 2; echo CUDA out of memory >&2; exit 9")
    cluster.apply(lws("loop", loads, size=2, leader=SLEEP | {"readinessProbe": ASKS_LEADER}))
    cluster.until("loop", lambda view: (view["groups"][0].get("recreations") or {}).get("count", 0) > 2, 90)
    verdict = "loop is crashing (LWS-E071): container rank of pod loop-0-1 crashed with exit code 9 (Error): CUDA out of memory"
    for sample in range(SAMPLES):
        told = ["explain", "loop"] if sample % 5 else ["wait", "loop", "--timeout=0.2"]
        result = cluster.ended(*told)
        assert verdict in (result.stdout + result.stderr).splitlines(), (
            f"sample {sample}: {result.stdout}{result.stderr}"
        )
    listed = cluster.shell.lws("get", f"--local={cluster.name}", "loop")
    assert "loop is crashing (LWS-E071): a container crashes" in listed.stderr


def test_crash_loop_is_never_healthy_for_a_minute(cluster: LocalCluster) -> None:
    """The other group is healthy, and remains healthy."""
    fails = shell_script("if [ $LWS_GROUP_INDEX = 1 ]; then sleep 2; exit 3; fi; exec sleep infinity")
    cluster.apply(lws("quick", fails, replicas=2, size=1))
    cluster.until("quick", lambda view: bool(view["groups"][1].get("recreations")), 60)
    words, groups, notes, end = [], [], [], time.monotonic() + OVER
    while time.monotonic() < end:
        words.append(cluster.ended("explain", "quick").stdout.split(":")[0].split(" (")[0])
        groups.append(cluster.ended("explain", "quick/0").stdout.split(":")[0])
        notes.append(cluster.shell.lws("get", f"--local={cluster.name}", "quick").stderr)
        time.sleep(EVERY)
    assert len(words) > 10
    assert set(words) <= {"quick is crashing", "quick is progressing"}
    assert words[-1] == "quick is crashing"
    assert set(groups) == {"quick/0 is healthy"}
    assert all("quick is crashing (LWS-E071)" in note for note in notes[-5:])


def test_service_without_matching_ranks_causes_a_warning(cluster: LocalCluster) -> None:
    ports = [{"port": 80}]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "door"}}
    objects = [service | {"spec": {"selector": {"app": "vlm"}, "ports": ports}}, lws("behind", SLEEP)]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    told = cluster.shell.lws("apply", f"--local={cluster.name}", "-f", "-", text=text).stderr
    idle = "note: Service default/door: spec.selector app=vlm does not match any pod, so the Service has no endpoints"
    cluster.lws("wait", "behind")
    explained = cluster.shell.lws("explain", f"--local={cluster.name}", "behind").stderr
    # its selector does not match any pods, and therefore it does not concern this set
    assert idle not in explained.splitlines()
    assert told.startswith(
        "warning: standard input:1: service/door: spec.selector app=vlm does not match any pod of these manifests; "
    )


def test_service_of_a_set_scaled_to_zero_causes_no_warning(cluster: LocalCluster) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "gate"}}
    selector = {"leaderworkerset.sigs.k8s.io/name": "asleep", "leaderworkerset.sigs.k8s.io/worker-index": "0"}
    cluster.apply(service | {"spec": {"selector": selector, "ports": [{"port": 80}]}}, lws("asleep", SLEEP, replicas=0))
    cluster.lws("wait", "asleep")
    assert "gate" not in cluster.shell.lws("explain", f"--local={cluster.name}", "asleep").stderr
    cluster.lws("delete", "asleep")
    cluster.start(lws("awake", SLEEP))
    assert "gate" not in cluster.shell.lws("explain", f"--local={cluster.name}", "awake").stderr
