"""Measure a cluster at rest: CPU and writes of `lws up` with ready groups, over some seconds.

python bench/idle.py [--seconds N]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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


def revision(environment: dict[str, str]) -> int:
    """Return the newest resourceVersion among the LeaderWorkerSet's objects; it moves with every write."""
    command = [*LWS, "get", "--local=bench", "-o", "json"]
    answer = json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)
    return int(answer["items"][0]["leaderWorkerSet"]["metadata"]["resourceVersion"])


def main() -> None:
    """Bring up twenty ranks, let them rest, and look twice."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=30)
    seconds = parser.parse_args().seconds
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
            before, version = cpu_seconds(pid), revision(environment)
            time.sleep(seconds)
            used = cpu_seconds(pid) - before
            print(json.dumps({
                "seconds": seconds,
                "cpu_percent_of_a_core": round(100 * used / seconds, 2),
                "writes_to_the_set": revision(environment) - version,
            }))  # fmt: skip
        finally:
            subprocess.run([*LWS, "down", "bench", "--delete"], env=environment, check=True, capture_output=True)


if __name__ == "__main__":
    main()
