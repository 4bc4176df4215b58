"""Measures the time of 50 groups of 4 stub pods from apply to Ready, and the memory of the cluster process.

python -m bench.cluster groups [--groups N] [--runs N]
"""

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path

from bench.processes import LWS, peak_memory
from bench.record import report

MANIFEST = """
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {{name: many}}
spec:
  replicas: {groups}
  leaderWorkerTemplate:
    size: 4
    workerTemplate:
      spec:
        containers: [{{name: main, image: vllm/vllm-openai, ports: [{{containerPort: 8000}}]}}]
"""


def measure(groups: int, directory: str) -> dict[str, float]:
    """Start a cluster, apply, wait until all groups are ready, and stop it."""
    environment = os.environ | {"LWS_STATE_HOME": directory}
    manifest = Path(directory) / "lws.yaml"
    manifest.write_text(MANIFEST.format(groups=groups))
    subprocess.run([*LWS, "up", "bench", "--detach", "--stub"], env=environment, check=True, capture_output=True)
    try:
        pid = int((Path(directory) / "bench" / "lock").read_text())
        start = time.perf_counter()
        subprocess.run(
            [*LWS, "apply", "--local=bench", "-f", str(manifest)], env=environment, check=True, capture_output=True
        )
        command = [*LWS, "wait", "--local=bench", "many", "--timeout", "120"]
        subprocess.run(command, env=environment, check=True, capture_output=True)
        return {"seconds": round(time.perf_counter() - start, 2), "memory_mib": round(peak_memory(pid), 1)}
    finally:
        subprocess.run([*LWS, "down", "bench", "--delete"], env=environment, check=True, capture_output=True)


def main() -> None:
    """Run several times, and print raw data."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--groups", type=int, default=50)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    for run in range(options.runs):
        with tempfile.TemporaryDirectory() as directory:
            report("groups", run=run, groups=options.groups, ranks_each=4, **measure(options.groups, directory))
