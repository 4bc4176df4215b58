"""Checks in the audit log of a real API server whether a paused leader writes after a leader change.

Prints the facts of the machine and one JSON line per limit of requests; needs the binaries of `tests/controlplane`. The
leader is stopped (SIGSTOP) while it has writes to send, and resumed (SIGCONT) once another one leads. `late` must be 0.

    python -m bench.manager fencing [--rounds 200] [--qps 5 --qps 500]
"""

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path

import structlog
from bench.record import machine, report
from testkit.clusters.kubernetes import KubernetesCluster
from tests.controlplane import build
from tests.controlplane.audit import Audit
from tests.controlplane.process import Plane, control_plane
from tests.integration.clusters.managed import set_up
from tests.kubernetes.manager import fencing
from tests.kubernetes.manager.installation import ACCOUNT
from tests.kubernetes.manager.world import opened

USUAL_QPS = 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--qps", type=int, action="append")
    options = parser.parse_args()
    assets = build.assets(lambda text: print(text, file=sys.stderr, flush=True))
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    print(json.dumps(machine()), flush=True)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        with control_plane(assets, directory, flags=Audit(directory).flags(ACCOUNT)) as plane:
            asyncio.run(set_up(KubernetesCluster(plane.kubeconfig)))
            late = sum(
                asyncio.run(measure(plane, directory, options.rounds, qps)) for qps in options.qps or (5, USUAL_QPS)
            )
    sys.exit(1 if late else 0)


async def measure(plane: Plane, directory: Path, rounds: int, qps: int) -> int:
    """Return the number of late writes."""
    async with opened(plane, directory) as world:
        counts = await fencing.rounds(world, count=rounds, client={"qps": qps, "burst": qps})
    for text in counts.late:
        print(text, file=sys.stderr)
    report("fencing", qps=qps, rounds=rounds, writes=counts.writes, late=len(counts.late))
    return len(counts.late)
