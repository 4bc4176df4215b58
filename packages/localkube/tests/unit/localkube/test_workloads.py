"""Tests the order in which controllers and a kubelet start with an API server."""

import subprocess
import sys
from pathlib import Path

import pytest

from kuberuntime.clock import SystemClock
from localkube import assembly, workloads
from localkube.clustersettings import Settings
from localkube.kubelet.processes.runner import Capabilities, StartError
from localkube.kubelet.processes.simulatedrunner import SimulatedRunner

IMPORTED_AT_THE_START = """
import asyncio, sys
from pathlib import Path
from localkube import cluster
from localkube.kubelet.processes.simulatedrunner import SimulatedRunner

LATE = ("localkube.kubelet.kubelet", "localkube.controllers.controllermanager")

class Runner(SimulatedRunner):
    async def start(self):
        print([name for name in LATE if name in sys.modules])
        await asyncio.sleep(0)  # as one whose process becomes ready meanwhile
        print([name for name in LATE if name in sys.modules] == list(LATE))
        return await super().start()

async def main():
    async with cluster.start(cluster.Settings(directory=Path(sys.argv[1])), processes=Runner()):
        pass

asyncio.run(main())
"""


class RefusedRunner(SimulatedRunner):
    """A runner whose process cannot start."""

    async def start(self) -> Capabilities:
        raise StartError("cannot start the launcher of the pods: no")


@pytest.mark.slow
def test_pod_process_starts_during_the_imports(tmp_path: Path) -> None:
    command = [sys.executable, "-c", IMPORTED_AT_THE_START, str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[:2] == ["[]", "True"]


async def test_error_of_the_runner_is_raised_unchanged(tmp_path: Path) -> None:
    async with assembly.serving(Settings(directory=tmp_path), SystemClock()) as cluster:
        with pytest.raises(StartError, match="cannot start the launcher"):
            async with workloads.working(cluster, RefusedRunner()):
                pass
