"""Runs one control plane for all manager tests, with a new installation for each test."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from testkit.clusters.kubernetes import KubernetesCluster
from tests.controlplane import build
from tests.controlplane.audit import Audit
from tests.controlplane.process import Plane, control_plane
from tests.integration.clusters.managed import set_up
from tests.kubernetes.manager.installation import ACCOUNT
from tests.kubernetes.manager.world import InstalledCluster, opened


@pytest.fixture(scope="package")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    assets = build.assets(lambda text: print(text, file=sys.stderr, flush=True))  # noqa: T201 - progress
    directory = tmp_path_factory.mktemp("plane")
    with control_plane(assets, directory, prepare, Audit(directory).flags(ACCOUNT)) as running:
        yield running


def prepare(plane: Plane) -> None:
    """Create the LeaderWorkerSet CRD and nodes. Close the connections before the event loop is closed."""

    async def begin() -> None:
        await set_up(KubernetesCluster(plane.kubeconfig))
        await asyncio.sleep(0.1)

    asyncio.run(begin())


@pytest.fixture
def world(plane: Plane, tmp_path: Path) -> AbstractAsyncContextManager[InstalledCluster]:
    """Return the environment of a test, which is opened in the event loop of the test."""
    return opened(plane, tmp_path)
