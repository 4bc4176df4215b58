"""Time `lws run` from its start to eight ready ranks (two groups of four, `sleep`), and `lws --help`.

python -m bench.startup [--runs N]
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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
LWS = [sys.executable, "-m", "leaderworkerset.cli"]


def timed(words: list[str], environment: dict[str, str]) -> float:
    """Return the seconds that a command takes; it must succeed."""
    start = time.perf_counter()
    subprocess.run(words, env=environment, check=True, capture_output=True, timeout=60)
    return time.perf_counter() - start


def ready_time(manifest: Path, environment: dict[str, str]) -> float:
    """Return the seconds from the start of `lws run` until it reports both groups ready; its end is not timed."""
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
    """Run each several times; print raw numbers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=7)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as directory:
        manifest = Path(directory) / "lws.yaml"
        manifest.write_text(MANIFEST)
        environment = os.environ | {"LWS_STATE_HOME": directory}
        for run in range(runs):
            report(
                "startup",
                run=run,
                ready_8_ranks_seconds=round(ready_time(manifest, environment), 3),
                help_seconds=round(timed([*LWS, "--help"], environment), 3),
            )


if __name__ == "__main__":
    main()
