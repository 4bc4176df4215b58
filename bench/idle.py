"""Measure a cluster at rest: CPU, wake-ups and writes of `lws up` with ready groups, over some seconds.

    python -m bench.idle [--seconds N] [--runs N]

A wake-up is a voluntary context switch of the cluster's process or its launcher: what polls shows up there.
"""

import argparse
import os
import re
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from bench.record import report

from localkube.kubelet.processes import processtree

LWS = [sys.executable, "-m", "leaderworkerset.cli"]
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


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children_seconds() -> float:
    """Return the processor time of all commands that this process started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def processes(pid: int) -> list[int]:
    """Return the cluster's process, and those of its launcher; containers are not among them."""
    seen = processtree.read()
    launchers = [found for found in processtree.descendants([pid], seen) if seen[found].name == "kube-launcher"]
    return [pid, *launchers, *(seen[launcher].parent for launcher in launchers if seen[launcher].parent != pid)]


def wakeups(pid: int) -> int:
    """Return how often the threads of a process have gone to sleep so far."""
    texts = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/status")]
    return sum(
        int(found) for text in texts for found in re.findall(r"^voluntary_ctxt_switches:\s+(\d+)", text, re.MULTILINE)
    )


def revision(directory: str) -> int:
    """Return the number of writes that the cluster's store has ever taken."""
    with closing(sqlite3.connect(f"file:{directory}/bench/state.db?mode=ro", uri=True)) as database:
        return int(database.execute("SELECT value FROM counters WHERE name = 'revision'").fetchone()[0])


def main() -> None:
    """Run several times; print raw numbers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--runs", type=int, default=1)
    options = parser.parse_args()
    for run in range(options.runs):
        measure(run, options.seconds)


def measure(run: int, seconds: float) -> None:
    """Bring up twenty ranks, let them rest, and look twice."""
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


if __name__ == "__main__":
    main()
