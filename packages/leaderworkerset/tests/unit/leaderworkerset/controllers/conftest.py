"""A cluster in one process for tests that request one."""

from contextlib import AbstractAsyncContextManager

import pytest
from tests.unit.leaderworkerset.controllers.cluster import Cluster


@pytest.fixture
def cluster() -> AbstractAsyncContextManager[Cluster]:
    """Return a running cluster without our controllers."""
    return Cluster().running()
