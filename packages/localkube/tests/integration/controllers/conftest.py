"""Provides an API server with its controllers for tests that request this fixture."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from tests.integration.controllers.world import ControlledServer, cluster


@pytest.fixture
def world(tmp_path: Path) -> AbstractAsyncContextManager[ControlledServer]:
    """Return a server with the default nodes."""
    return cluster(tmp_path)
