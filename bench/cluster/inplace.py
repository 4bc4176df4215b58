"""Measures rollouts with recreation and in place, alternately, on one cluster of real processes.

python -m bench.cluster inplace [--groups N] [--load SECONDS] [--runs N]

A pod is ready once its program has loaded its data into the pod's volume, for this number of seconds; a restarted
container in the same pod finds the data there. Groups of 4, one after the other.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bench.processes import LWS
from bench.record import report

SIZE: Final = 4
ANNOTATION: Final = "leaderworkerset.sigs.k8s.io/in-place"
PATIENCE: Final = 1200

ROLLOUTS: Final = (("another image", "app:2", "1"), ("other CPU", "app:1", "2"))
"""The changes to roll out, based on `app:1` with a request of one CPU."""


def manifest(groups: int, load: float, image: str, cpu: str, way: str) -> str:
    """Return a LeaderWorkerSet whose pods load for `load` seconds. Without a `way`, groups are recreated."""
    script = f"test -e /load/done || sleep {load}; touch /load/done /tmp/ready; exec sleep infinity"
    container = {
        "name": "main",
        "image": image,
        "command": ["sh", "-c", script],
        "resources": {"requests": {"cpu": cpu}},
        "volumeMounts": [{"name": "load", "mountPath": "/load"}],
        "readinessProbe": {"exec": {"command": ["test", "-e", "/tmp/ready"]}, "periodSeconds": 1},
    }
    pod = {
        "terminationGracePeriodSeconds": 1,
        "volumes": [{"name": "load", "emptyDir": {}}],
        "containers": [container],
    }
    leaderworkerset = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "web", "annotations": {ANNOTATION: way} if way else {}},
        "spec": {"replicas": groups, "leaderWorkerTemplate": {"size": SIZE, "workerTemplate": {"spec": pod}}},
    }
    return json.dumps(leaderworkerset)


def measure(groups: int, load: float, run: int, directory: str) -> None:
    """Start a cluster, and roll out each change with both methods. Print the seconds and the unchanged pods."""
    environment = os.environ | {"LWS_STATE_HOME": directory}
    file = Path(directory) / "lws.yaml"

    def lws(*words: str) -> str:
        process = subprocess.run([*LWS, *words], env=environment, check=True, capture_output=True, text=True)
        return process.stdout

    def roll(image: str, cpu: str, way: str) -> float:
        file.write_text(manifest(groups, load, image, cpu, way))
        start = time.perf_counter()
        lws("apply", "--local=bench", "-f", str(file))
        lws("wait", "--local=bench", "web", "--timeout", str(PATIENCE))
        return round(time.perf_counter() - start, 1)

    lws("up", "bench", "--detach")
    try:
        compare(groups, run, roll, lambda: uids(lws("get", "--local=bench", "web", "-o", "view")))
    finally:
        lws("down", "bench", "--delete")


def compare(groups: int, run: int, roll: Callable[[str, str, str], float], pods: Callable[[], set[str]]) -> None:
    """Measure each change with both methods, starting from the same state."""
    for phase, image, cpu in ROLLOUTS:
        for how, way in (("recreated", ""), ("in place", "IfPossible")):
            roll("app:1", "1", "")
            before = pods()
            seconds = roll(image, cpu, way)
            kept = len(before & pods())
            report("rollout", phase=f"{phase}, {how}", run=run, groups=groups, seconds=seconds, pods_kept=kept)


def uids(text: str) -> set[str]:
    """Return the UIDs of the pods in the output of `lws get -o view`."""
    groups = json.loads(text)["items"][0]["groups"]
    return {rank["uid"] for group in groups for rank in group["ranks"] if rank.get("uid")}


def main() -> None:
    """Run several times, and print raw data."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--groups", type=int, default=6)
    parser.add_argument("--load", type=float, default=5.0, metavar="SECONDS")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    for run in range(options.runs):
        with tempfile.TemporaryDirectory() as directory:
            measure(options.groups, options.load, run, directory)
