"""Measures `lws` commands: startup, `lws get`, log following, and the dashboard.

    python -m bench.command start [--runs N] [--source NAME=DIRECTORY ...]
    python -m bench.command get [--runs N] [--groups N] [--size N] [--cluster NAME]
    python -m bench.command logs [--runs N] [--mebibytes N] [--followers N] [--limit RATIO]
    python -m bench.command dashboard [--parts small large] [--groups 1000] [--size 8]

`dashboard` is described in `bench/command_dashboard.py`.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path

from bench.processes import LWS, MANY, SLEEPERS, LocalCluster, children_seconds, local_cluster
from bench.record import report, run

PATIENCE = 1800
PATIENCE_OF_LOGS = 600

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

PROGRAM = """\
import sys, time
time.sleep(4)  # followers begin
lines = ("x" * 99 + "\\n") * 640
begin = time.monotonic()
for _ in range({size} // len(lines)):
    sys.stdout.write(lines)
sys.stdout.flush()
print("took", time.monotonic() - begin, flush=True)
time.sleep(3600)
"""
"""Writes `size` bytes of lines, and measures the time."""


def timed(words: list[str], environment: dict[str, str]) -> float:
    """Return the duration of a command in seconds. The command must succeed."""
    start = time.perf_counter()
    subprocess.run(words, env=environment, check=True, capture_output=True, timeout=60)
    return time.perf_counter() - start


def ready_time(manifest: Path, environment: dict[str, str]) -> float:
    """Return the seconds from the start of `lws run` until both groups are ready, without its termination."""
    start = time.perf_counter()
    with subprocess.Popen(
        [*LWS, "run", "-f", str(manifest)],
        env=environment,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stderr is not None
        ready: set[str] = set()
        for line in process.stderr:
            if "4 of 4 ranks ready" in line:
                ready.add(line.split(":")[0])
            if len(ready) == 2:
                break
        elapsed = time.perf_counter() - start
        process.terminate()
        process.wait(30)
    return elapsed


def start() -> None:
    """Measure `lws run` until eight ranks are ready (two groups of four, `sleep`), and `lws --help`.

    With `--source`, they run from these source trees alternately, for example before and after a change. The CPU time
    includes the whole `lws run`, with its termination and its ranks.
    """
    parser = argparse.ArgumentParser(description=start.__doc__)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--source", action="append", default=[], metavar="NAME=DIRECTORY")
    options = parser.parse_args()
    sources = dict(text.split("=", 1) for text in options.source) or {None: os.environ.get("PYTHONPATH", "")}
    with tempfile.TemporaryDirectory() as directory:
        manifest = Path(directory) / "lws.yaml"
        manifest.write_text(SLEEPERS.format(groups=2))
        for number in range(options.runs):
            for name, source in sources.items():
                environment = os.environ | {"LWS_STATE_HOME": directory, "PYTHONPATH": source}
                before = children_seconds()
                ready = ready_time(manifest, environment)
                report(
                    "startup",
                    server=name,
                    run=number,
                    ready_8_ranks_seconds=round(ready, 3),
                    cpu_seconds=round(children_seconds() - before, 2),
                    help_seconds=round(timed([*LWS, "--help"], environment), 3),
                )


def get() -> None:
    """Measure the time of `lws get` and `lws --help` to the first byte.

    The cluster contains 200 groups of eight stub pods and a failing set. With `--cluster`, the commands use a running cluster of this machine that already contains the groups and the set
    `stuck`. The minimum of the runs is the time of the command. The others include other work of the machine.
    """
    parser = argparse.ArgumentParser(description=get.__doc__)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--groups", type=int, default=200)
    parser.add_argument("--size", type=int, default=8)
    parser.add_argument("--cluster", help="a running cluster that already has the groups")
    options = parser.parse_args()
    title = f"lws get, {options.groups} groups of {options.size}"
    if options.cluster:
        measure_get(options.cluster, dict(os.environ), title, options.runs)
        return
    with local_cluster("--stub", "--network=shared", "--max-pods=5000") as cluster:
        cluster.apply(MANY.format(groups=options.groups, size=options.size, probe="") + STUCK)
        cluster.lws("wait", "many", "--timeout", str(PATIENCE))
        measure_get(cluster.name, cluster.environment, title, options.runs)


def measure_get(cluster: str, environment: dict[str, str], title: str, runs: int) -> None:
    """Measure the commands with a cluster."""
    reads = [*LWS, f"--local={cluster}", "get"]
    commands = {"get": reads, "get_ranks": [*reads, "--ranks"], "get_stuck": [*reads, "stuck"]}
    for number in range(runs):
        numbers: dict[str, float] = {}
        for name, words in commands.items():
            seconds, cpu = first_byte(words, environment)
            numbers |= {f"{name}_first_byte_seconds": round(seconds, 3), f"{name}_cpu_seconds": round(cpu, 3)}
        seconds, cpu = first_byte([*LWS, "--help"], environment)
        report(title, run=number, **numbers, help_seconds=round(seconds, 3), help_cpu_seconds=round(cpu, 3))


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


def logs() -> None:
    """Measure a rank that writes 100 MiB of lines, without a log reader and with `lws logs --follow`.

    The rank measures its own writes. Both variants run alternately, so that other work of the machine affects both
    equally. The exit code is 1 if the median of the ratios is above the limit.
    """
    parser = argparse.ArgumentParser(description=logs.__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--mebibytes", type=int, default=100)
    parser.add_argument("--followers", type=int, default=1)
    parser.add_argument("--limit", type=float, default=2.0)
    options = parser.parse_args()
    size = options.mebibytes * 2**20
    ratios = []
    with local_cluster() as cluster:
        for number in range(options.runs):
            alone = writing_seconds(cluster, f"alone-{number}", size, 0)
            followed = writing_seconds(cluster, f"followed-{number}", size, options.followers)
            ratios.append(followed / alone)
            report(
                f"{options.mebibytes} MiB of lines, {options.followers} followers",
                run=number,
                alone_seconds=round(alone, 2),
                followed_seconds=round(followed, 2),
                ratio=round(ratios[-1], 2),
            )
    sys.exit(statistics.median(ratios) > options.limit)


def writing_seconds(cluster: LocalCluster, name: str, size: int, followers: int) -> float:
    """Return the seconds that a rank needs for `size` bytes while `followers` print its log."""
    container = {"name": "main", "image": "none", "command": ["python3", "-c", PROGRAM.format(size=size)]}
    template = {"size": 1, "workerTemplate": {"spec": {"containers": [container]}}}
    kind = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet"}
    cluster.apply(json.dumps({**kind, "metadata": {"name": name}, "spec": {"leaderWorkerTemplate": template}}))
    cluster.lws("wait", name, "--timeout", "60")
    with ExitStack() as stack:
        for _ in range(followers):
            words = [*LWS, f"--local={cluster.name}", "logs", name, "--follow"]
            follower = subprocess.Popen(words, env=cluster.environment, stdout=subprocess.DEVNULL)
            stack.enter_context(follower)
            stack.callback(follower.terminate)
        seconds = reported(cluster, name)
    cluster.lws("delete", name)
    return seconds


def reported(cluster: LocalCluster, name: str) -> float:
    """Return the seconds in the last line of a log, when it is written."""
    deadline = time.monotonic() + PATIENCE_OF_LOGS
    while time.monotonic() < deadline:
        time.sleep(1)
        words = [*LWS, f"--local={cluster.name}", "logs", name, "--tail=1"]
        tail = subprocess.run(words, env=cluster.environment, capture_output=True, text=True, check=False).stdout
        if "took " in tail:
            return float(tail.rsplit("took ", 1)[1])
    raise SystemExit(f"the rank did not write all lines within {PATIENCE_OF_LOGS} s")


def dashboard() -> None:
    """Measure the dashboard in a browser: first paint, idle requests, bytes during a rollout, and latency."""
    import_module("bench.command_dashboard").main()


BENCHMARKS = {work.__name__: work for work in (start, get, logs, dashboard)}

if __name__ == "__main__":
    run("command", BENCHMARKS)
