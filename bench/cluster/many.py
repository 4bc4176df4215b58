"""Measures the time to ready, memory and CPU time of thousands of stub pods in groups of 4 (`--size`).

python -m bench.cluster many [--pods N ...] [--size N] [--network isolated|shared] [--probe-every SECONDS]

With probes, ready pods must still be ready after six more probes each.

The machine must allow about eight open files (hard limit, `ulimit -Hn`) and one process per pod.
"""

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path

from bench.cluster.groups import MANIFEST
from bench.processes import LWS, cpu_seconds, peak_memory, processes
from bench.record import report

PATIENCE = 1200
PROBE = ", readinessProbe: {{httpGet: {{port: 8000}}, periodSeconds: {}}}}}]"
PROBES_MORE = 6


def measure(pods: int, options: argparse.Namespace, directory: str) -> dict[str, float]:
    """Start a cluster, apply, wait until all pods are ready, and stop it."""
    probe_every = options.probe_every
    environment = os.environ | {"LWS_STATE_HOME": directory}
    manifest = Path(directory) / "lws.yaml"
    text = MANIFEST.format(groups=pods // options.size).replace("size: 4", f"size: {options.size}")
    manifest.write_text(text.replace("}]}]", "}]" + PROBE.format(probe_every)) if probe_every else text)

    def lws(*words: str) -> None:
        subprocess.run([*LWS, *words], env=environment, check=True, capture_output=True)

    lws("up", "bench", "--detach", "--stub", f"--network={options.network}", f"--max-pods={max(pods, 5000)}")
    try:
        cluster = int((Path(directory) / "bench" / "lock").read_text())
        launcher = processes(cluster)[1]
        start = time.perf_counter()
        lws("apply", "--local=bench", "-f", str(manifest))
        lws("wait", "--local=bench", "many", "--timeout", str(PATIENCE))
        seconds = round(time.perf_counter() - start, 1)
        if probe_every:
            time.sleep(PROBES_MORE * probe_every)
            lws("wait", "--local=bench", "many", "--timeout", "0")
        return {
            "seconds": seconds,
            "cluster_cpu_seconds": round(cpu_seconds(cluster), 1),
            "launcher_cpu_seconds": round(cpu_seconds(launcher), 1),
            "cluster_memory_mib": round(peak_memory(cluster), 1),
            "launcher_memory_mib": round(peak_memory(launcher), 1),
            "cluster_files": len(list(Path(f"/proc/{cluster}/fd").iterdir())),
            "launcher_files": len(list(Path(f"/proc/{launcher}/fd").iterdir())),
        }
    finally:
        lws("down", "bench", "--delete")


def main() -> None:
    """Run each number of pods once, and print raw data."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pods", type=int, nargs="+", default=[500, 2000])
    parser.add_argument("--size", type=int, default=4)
    parser.add_argument("--network", choices=["isolated", "shared"], default="isolated")
    parser.add_argument("--probe-every", type=int, default=0, metavar="SECONDS")
    options = parser.parse_args()
    for pods in options.pods:
        with tempfile.TemporaryDirectory() as directory:
            numbers = measure(pods, options, directory)
            suffix = ", shared network" if options.network == "shared" else ""
            suffix += f", probed every {options.probe_every} s" if options.probe_every else ""
            suffix += f", groups of {options.size}" if options.size != 4 else ""  # the name in older lines
            report(f"{pods} stub pods{suffix}", run=0, pods=pods, network=options.network, **numbers)
