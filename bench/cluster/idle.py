"""Measures CPU usage, wake-ups and writes of an idle cluster with ready groups for several seconds.

    python -m bench.cluster idle [--seconds N] [--runs N]

A wake-up is a voluntary context switch of the cluster's process or its launcher, which reveals polling.
"""

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path

from bench.processes import LWS, cpu_seconds, processes, revision, wakeups
from bench.record import report

MANIFEST = """
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: sleepers}
spec:
  replicas: 5
  leaderWorkerTemplate:
    size: 4
    workerTemplate:
      spec:
        containers: [{name: main, image: none, command: [sleep, "3600"]}]
"""


def main() -> None:
    """Run several times, and print raw data."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--runs", type=int, default=1)
    options = parser.parse_args()
    for run in range(options.runs):
        measure(run, options.seconds)


def measure(run: int, seconds: float) -> None:
    """Start twenty ranks, wait until the cluster is idle, and read the counters two times."""
    with tempfile.TemporaryDirectory() as directory:
        environment = os.environ | {"LWS_STATE_HOME": directory}
        manifest = Path(directory) / "lws.yaml"
        manifest.write_text(MANIFEST)
        subprocess.run([*LWS, "up", "bench", "--detach"], env=environment, check=True, capture_output=True)
        try:
            for words in (["apply", "-f", str(manifest)], ["wait", "sleepers"]):
                subprocess.run(
                    [*LWS, words[0], "--local=bench", *words[1:]], env=environment, check=True, capture_output=True
                )
            pid = int((Path(directory) / "bench" / "lock").read_text())
            time.sleep(5)
            version = revision(directory)
            watched = processes(pid)
            before, woken = sum(map(cpu_seconds, watched)), sum(map(wakeups, watched))
            time.sleep(seconds)
            report(
                "idle",
                run=run,
                seconds=seconds,
                ranks=20,
                cpu_percent_of_a_core=round(100 * (sum(map(cpu_seconds, watched)) - before) / seconds, 2),
                wakeups_per_second=round((sum(map(wakeups, watched)) - woken) / seconds, 2),
                writes=revision(directory) - version,
            )
        finally:
            subprocess.run([*LWS, "down", "bench", "--delete"], env=environment, check=True, capture_output=True)
