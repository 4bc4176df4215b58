"""Start hundreds or thousands of stub pods, groups of 4: time to ready, memory and processor of the whole cluster.

python -m bench.many [--pods N ...] [--network isolated|shared]

The machine has to allow it: about eight open files per pod of the hard limit (`ulimit -Hn`), and one process.
"""

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path

from bench.groups import LWS, MANIFEST, peak_memory
from bench.record import report

SIZE = 4
PATIENCE = 1200
LAUNCHER = "lws-launcher"


def family() -> dict[int, tuple[str, int]]:
    """Return the name and the parent of every process of the machine, without those that just ended."""
    found = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                text = (path / "stat").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
            name, _, fields = text.partition("(")[2].rpartition(")")
            found[int(path.name)] = (name, int(fields.split()[1]))
    return found


def launcher_of(cluster: int) -> int:
    """Return the PID of the cluster's launcher: its grandchild, with the watchman between them."""
    processes = family()
    for pid, (name, parent) in processes.items():
        if name == LAUNCHER and (parent == cluster or processes.get(parent, ("", 0))[1] == cluster):
            return pid
    raise SystemExit(f"the cluster (PID {cluster}) has no launcher")


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has used itself."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return round((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), 1)


def measure(pods: int, network: str, directory: str) -> dict[str, float]:
    """Start a cluster, apply, wait until all is ready, and stop it."""
    environment = os.environ | {"LWS_STATE_HOME": directory}
    manifest = Path(directory) / "lws.yaml"
    manifest.write_text(MANIFEST.format(groups=pods // SIZE))

    def lws(*words: str) -> None:
        subprocess.run([*LWS, *words], env=environment, check=True, capture_output=True)

    lws("up", "bench", "--detach", "--stub", f"--network={network}", f"--max-pods={max(pods, 5000)}")
    try:
        cluster = int((Path(directory) / "bench" / "lock").read_text())
        launcher = launcher_of(cluster)
        start = time.perf_counter()
        lws("apply", "--local=bench", "-f", str(manifest))
        lws("wait", "--local=bench", "many", "--timeout", str(PATIENCE))
        return {
            "seconds": round(time.perf_counter() - start, 1),
            "cluster_cpu_seconds": cpu_seconds(cluster),
            "launcher_cpu_seconds": cpu_seconds(launcher),
            "cluster_memory_mib": round(peak_memory(cluster), 1),
            "launcher_memory_mib": round(peak_memory(launcher), 1),
            "cluster_files": len(os.listdir(f"/proc/{cluster}/fd")),
            "launcher_files": len(os.listdir(f"/proc/{launcher}/fd")),
        }
    finally:
        lws("down", "bench", "--delete")


def main() -> None:
    """Run each number of pods once; print raw numbers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pods", type=int, nargs="+", default=[500, 2000])
    parser.add_argument("--network", choices=["isolated", "shared"], default="isolated")
    options = parser.parse_args()
    for pods in options.pods:
        with tempfile.TemporaryDirectory() as directory:
            found = measure(pods, options.network, directory)
            report(f"{pods} stub pods", run=0, pods=pods, network=options.network, **found)


if __name__ == "__main__":
    main()
