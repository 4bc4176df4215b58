"""An API server with its controllers for tests that ask for one."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from tests.integration.controllers.world import ControlledServer, cluster


@pytest.fixture
def world(tmp_path: Path) -> AbstractAsyncContextManager[ControlledServer]:
    """Return a server with the usual nodes."""
    return cluster(tmp_path)
