"""Provides both clusters. The control plane is started once. Logs of failing tests contain only warnings."""

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TypeAlias

import pytest
from tests.controlplane.process import Plane
from tests.parity import clusters
from tests.parity.clusters import ParityCluster

from leaderworkerset.manager import managerlog
from leaderworkerset.manager.managerlog import LogSettings

Start: TypeAlias = Callable[[], AbstractAsyncContextManager[ParityCluster]]


@pytest.fixture(autouse=True)
def _quiet_logs() -> None:
    managerlog.configure(LogSettings(level="error"))


@pytest.fixture(scope="package")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """Run a control plane. Each test deletes the objects in its namespace."""
    with clusters.plane(tmp_path_factory.mktemp("plane")) as running:
        yield running


@pytest.fixture(params=["embedded", "kubernetes"])
def start(request: pytest.FixtureRequest, tmp_path: Path) -> Start:
    """Return a function that starts or uses a cluster in the event loop of a test."""
    if request.param == "embedded":
        return lambda: clusters.embedded(tmp_path)
    running: Plane = request.getfixturevalue("plane")
    return lambda: clusters.kubernetes(running)
