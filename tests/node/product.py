"""Install the product on the cluster, as its pages say."""

import subprocess
import sys
from pathlib import Path
from typing import Final

from testkit.repository import ROOT
from tests.controlplane.process import StartError
from tests.node.cluster import Cluster
from tests.node.images import PRODUCT

NAMESPACE: Final = "lws-system"
ADDITIONS: Final = ("in-place",)
"""Folders with rights that the manager has only where somebody grants them."""

MANIFESTS: Final = Path(__file__).parent / "manifests"


def install(cluster: Cluster, image: str = PRODUCT) -> str:
    """Install an image of the manager, or update it, and wait until its managers are ready; return what was printed."""
    words = ["install", f"--image={image}", f"--config={MANIFESTS / 'manager.yaml'}", "--wait", "--timeout=5m"]
    done = subprocess.run(
        [*cluster.inside, sys.executable, "-m", "leaderworkerset.cli", *words],
        env=cluster.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        state = cluster.kubectl("get", "pods,events", f"--namespace={NAMESPACE}")
        raise StartError(f"lws install ended with {done.returncode}:\n{done.stdout}{done.stderr}\n{state}")
    for name in ADDITIONS:
        cluster.kubectl("apply", "--filename", str(ROOT / "deploy" / name / "manager.yaml"))
    return done.stdout
