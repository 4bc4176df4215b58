"""Measures `lws run` until eight ranks are ready (two groups of four, `sleep`), and `lws --help`.

    python -m bench.command start [--runs N] [--source NAME=DIRECTORY ...]

With `--source`, they run from these source trees, in turn, for example before and after a change. The processor time
includes the whole `lws run`, with its end and its ranks.
"""

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path

from bench.processes import LWS, children_seconds
from bench.record import report

MANIFEST = """
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: sleepers}
spec:
  replicas: 2
  leaderWorkerTemplate:
    size: 4
    workerTemplate:
      spec:
        containers: [{name: main, image: none, command: [sleep, "600"]}]
"""


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


def main() -> None:
    """Run each command several times, and print raw data."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--source", action="append", default=[], metavar="NAME=DIRECTORY")
    options = parser.parse_args()
    sources = dict(text.split("=", 1) for text in options.source) or {None: os.environ.get("PYTHONPATH", "")}
    with tempfile.TemporaryDirectory() as directory:
        manifest = Path(directory) / "lws.yaml"
        manifest.write_text(MANIFEST)
        environment = os.environ | {"LWS_STATE_HOME": directory}
        for run in range(options.runs):
            for name, source in sources.items():
                environment["PYTHONPATH"] = source
                before = children_seconds()
                ready = ready_time(manifest, environment)
                report(
                    "startup",
                    server=name,
                    run=run,
                    ready_8_ranks_seconds=round(ready, 3),
                    cpu_seconds=round(children_seconds() - before, 2),
                    help_seconds=round(timed([*LWS, "--help"], environment), 3),
                )
