"""Measures a rank that writes 100 MiB of lines, without a log reader and with `lws logs --follow`.

    python -m bench.command logs [--runs N] [--mebibytes N] [--followers N] [--limit RATIO]

The rank measures its own writes. Both kinds take turns, so that other work of the machine affects both equally. Exits
with code 1 if the median of the ratios is above the limit (2).
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
from pathlib import Path

from bench.processes import LWS
from bench.record import report

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
PATIENCE = 600


def manifest(name: str, size: int) -> str:
    """Return a LeaderWorkerSet with one rank that writes `size` bytes."""
    container = {"name": "main", "image": "none", "command": ["python3", "-c", PROGRAM.format(size=size)]}
    template = {"size": 1, "workerTemplate": {"spec": {"containers": [container]}}}
    kind = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet"}
    return json.dumps({**kind, "metadata": {"name": name}, "spec": {"leaderWorkerTemplate": template}})


def took(name: str, size: int, followers: int, environment: dict[str, str]) -> float:
    """Return the seconds that a rank writes while `followers` print its log."""
    path = Path(environment["LWS_STATE_HOME"]) / f"{name}.json"
    path.write_text(manifest(name, size))
    lws = [*LWS, "--local=bench"]
    subprocess.run([*lws, "apply", "-f", str(path)], env=environment, check=True, capture_output=True)
    subprocess.run([*lws, "wait", name, "--timeout", "60"], env=environment, check=True, capture_output=True)
    with ExitStack() as stack:
        for _ in range(followers):
            words = [*lws, "logs", name, "--follow"]
            follower = stack.enter_context(subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL))
            stack.callback(follower.terminate)
        seconds = reported([*lws, "logs", name, "--tail=1"], environment)
    subprocess.run([*lws, "delete", name], env=environment, check=True, capture_output=True)
    return seconds


def reported(words: list[str], environment: dict[str, str]) -> float:
    """Return the seconds in the last line of a log, when it is written."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        time.sleep(1)
        tail = subprocess.run(words, env=environment, capture_output=True, text=True, check=False).stdout
        if "took " in tail:
            return float(tail.rsplit("took ", 1)[1])
    raise SystemExit(f"the rank did not end its lines within {PATIENCE} s")


def main() -> None:
    """Run both variants alternately, and print raw data."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--mebibytes", type=int, default=100)
    parser.add_argument("--followers", type=int, default=1)
    parser.add_argument("--limit", type=float, default=2.0)
    options = parser.parse_args()
    size = options.mebibytes * 2**20
    ratios = []
    with tempfile.TemporaryDirectory() as directory:
        environment = os.environ | {"LWS_STATE_HOME": directory}
        subprocess.run([*LWS, "up", "bench", "--detach"], env=environment, check=True, capture_output=True)
        try:
            for run in range(options.runs):
                alone = took(f"alone-{run}", size, 0, environment)
                followed = took(f"followed-{run}", size, options.followers, environment)
                ratios.append(followed / alone)
                report(
                    f"{options.mebibytes} MiB of lines, {options.followers} followers",
                    run=run,
                    alone_seconds=round(alone, 2),
                    followed_seconds=round(followed, 2),
                    ratio=round(ratios[-1], 2),
                )
        finally:
            subprocess.run([*LWS, "down", "bench", "--delete"], env=environment, check=False, capture_output=True)
    sys.exit(statistics.median(ratios) > options.limit)
