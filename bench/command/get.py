"""Measures `lws get` with 200 groups of eight stub pods and a failing set, and `lws --help`.

The time ends at the first byte.

python -m bench.command get [--runs N] [--groups N] [--size N] [--cluster NAME]

Wall clock and processor. With --cluster, the commands use a running cluster of this machine that already has these
groups and the set `stuck`, and leave it unchanged.

The minimum of the runs is the time of the program itself; the others include other work of the machine.
"""

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path

from bench.cluster.groups import MANIFEST
from bench.processes import LWS, children_seconds
from bench.record import report

PATIENCE = 1800

STUCK = """\
---
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: stuck}
spec:
  leaderWorkerTemplate:
    size: 2
    workerTemplate:
      spec: {containers: [{name: main, image: none, resources: {requests: {cpu: "100000"}}}]}
"""
"""A set that does not fit on any node."""


def first_byte(words: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Return the seconds until the first byte of a command, and its total CPU time."""
    before = children_seconds()
    start = time.perf_counter()
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.read(1), words
        elapsed = time.perf_counter() - start
        process.stdout.read()
    return elapsed, children_seconds() - before


def measure(cluster: str, runs: int, title: str, environment: dict[str, str]) -> None:
    """Measure the commands with a cluster."""
    for run in range(runs):
        get, get_cpu = first_byte([*LWS, "get", f"--local={cluster}"], environment)
        ranks, ranks_cpu = first_byte([*LWS, "get", f"--local={cluster}", "--ranks"], environment)
        stuck, stuck_cpu = first_byte([*LWS, "get", "stuck", f"--local={cluster}"], environment)
        help_seconds, help_cpu = first_byte([*LWS, "--help"], environment)
        report(
            title,
            run=run,
            get_first_byte_seconds=round(get, 3),
            get_cpu_seconds=round(get_cpu, 3),
            get_ranks_first_byte_seconds=round(ranks, 3),
            get_ranks_cpu_seconds=round(ranks_cpu, 3),
            get_stuck_first_byte_seconds=round(stuck, 3),
            get_stuck_cpu_seconds=round(stuck_cpu, 3),
            help_seconds=round(help_seconds, 3),
            help_cpu_seconds=round(help_cpu, 3),
        )


def measure_new(runs: int, title: str, manifest: str) -> None:
    """Start a cluster with the groups, measure, and stop it."""
    with tempfile.TemporaryDirectory() as directory:
        environment = os.environ | {"LWS_STATE_HOME": directory}
        path = Path(directory) / "lws.yaml"
        path.write_text(manifest + STUCK)

        def lws(*words: str) -> None:
            subprocess.run([*LWS, *words], env=environment, check=True, capture_output=True)

        lws("up", "bench", "--detach", "--stub", "--network=shared", "--max-pods=5000")
        try:
            lws("apply", "--local=bench", "-f", str(path))
            lws("wait", "--local=bench", "many", "--timeout", str(PATIENCE))
            measure("bench", runs, title, environment)
        finally:
            lws("down", "bench", "--delete")


def main() -> None:
    """Run, and print raw data."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--groups", type=int, default=200)
    parser.add_argument("--size", type=int, default=8)
    parser.add_argument("--cluster", help="a running cluster that has the groups already")
    options = parser.parse_args()
    title = f"lws get, {options.groups} groups of {options.size}"
    if options.cluster:
        measure(options.cluster, options.runs, title, dict(os.environ))
    else:
        manifest = MANIFEST.format(groups=options.groups).replace("size: 4", f"size: {options.size}")
        measure_new(options.runs, title, manifest)
