"""Provides a kubelet that runs processes, for tests that request this fixture."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from tests.integration.kubelet.harness import KubeletWithProcesses, cluster


@pytest.fixture
def it(tmp_path: Path) -> AbstractAsyncContextManager[KubeletWithProcesses]:
    """Return a cluster whose pods run in Linux namespaces."""
    return cluster(tmp_path)
