"""Provides a cluster in one process for tests that request it."""

from contextlib import AbstractAsyncContextManager

import pytest
from tests.unit.leaderworkerset.controllers.cluster import NodelessCluster


@pytest.fixture
def cluster() -> AbstractAsyncContextManager[NodelessCluster]:
    """Return a running cluster without the manager's controllers."""
    return NodelessCluster().running()
