"""Tests manifests in docs/how-to/frameworks.md with a small real program if available, or with a rehearsal.

MPI comes from `make frameworks` (`requirements/frameworks.lock`, 15 MB). torch is large and not pinned: it is tried if it
is installed (`.venv/bin/pip install torch`). The last version was 2.15.0.
"""

import importlib.util
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from tests.e2e.harness import ROOT, LocalCluster, Shell

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

MANIFESTS: Final = ROOT / "docs/how-to/frameworks"
FRAMEWORKS: Final = ROOT / "build/frameworks"

RUN: Final = ("jax", "torchrun", "mpi")
REHEARSED: Final = ("vllm", "sglang")

SUM: Final = re.compile(r"^0/(\d) .*rank (\d) of 4: the sum of ranks is 6$", re.MULTILINE)


def lacks(name: str) -> str:
    """Return the reason why the program of a manifest cannot run, or an empty string if it can run."""
    match name:
        case "jax":
            return "" if importlib.util.find_spec("jax") else "jax is not installed"
        case "torchrun":
            return (
                ""
                if shutil.which("torchrun")
                else "torch is large (5 GB with its libraries for GPUs), and not installed"
            )
        case _:
            return "" if (FRAMEWORKS / "bin/mpiexec").exists() else "make frameworks has not been run"


def with_mpi(manifest: Any) -> Any:
    """Return the manifest with an environment that contains the programs of `make frameworks`, as in an image."""
    found = {
        "PATH": f"{Path(sys.executable).parent}:{FRAMEWORKS / 'bin'}:{os.environ['PATH']}",
        "LD_LIBRARY_PATH": str(FRAMEWORKS / "lib"),
        "PYTHONPATH": str(next((FRAMEWORKS / "lib").glob("python3*/site-packages"))),
    }
    (container,) = manifest["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"]
    container["env"] = [{"name": name, "value": value} for name, value in found.items()]
    return manifest


def test_every_manifest_is_tried_and_documented() -> None:
    assert {path.stem for path in MANIFESTS.iterdir()} == {*RUN, *REHEARSED}
    page = (ROOT / "docs/how-to/frameworks.md").read_text()
    assert [name for name in (*RUN, *REHEARSED) if f"(frameworks/{name}.yaml)" not in page] == []


@pytest.mark.parametrize("name", RUN)
def test_four_ranks_compute_one_sum(shell: Shell, name: str) -> None:
    if lacking := lacks(name):
        pytest.skip(lacking)
    manifest = yaml.safe_load((MANIFESTS / f"{name}.yaml").read_text())
    text = yaml.safe_dump(with_mpi(manifest) if name == "mpi" else manifest)
    told = shell.lws("run", "-f", "-", "--until", "done", "--timeout", "80", text=text)
    assert {rank for _, rank in SUM.findall(told.stdout + told.stderr)} == set("0123")
    shell.assert_nothing_is_left()


@pytest.mark.parametrize("name", REHEARSED)
def test_server_is_rehearsed_with_its_nodes_and_gpus(shell: Shell, name: str) -> None:
    words = ["run", "-f", str(MANIFESTS / f"{name}.yaml"), "--nodes", "auto", "--gpus", "auto", "--stub=all"]
    told = shell.lws(*words, "--until", "ready", "--timeout", "80").stderr
    assert told.splitlines()[-1] == "2 ranks in 1 group are ready"


def test_manifests_are_accepted_without_wait_loops(cluster: LocalCluster) -> None:
    """The API server accepts all fields, and `lws doctor` does not find a deadlock."""
    for name in (*RUN, *REHEARSED):
        path = str(MANIFESTS / f"{name}.yaml")
        assert "accepted (dry run)" in cluster.lws("apply", "--dry-run=server", "-f", path)
        checked = cluster.shell.lws("doctor", "--no-machine", "--no-cluster", "-f", path)
        assert "no loop waits for a name or a port" in checked.stdout
