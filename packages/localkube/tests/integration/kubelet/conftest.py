"""Provides a kubelet with processes for tests that request it."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from tests.integration.kubelet.harness import KubeletWithProcesses, cluster


@pytest.fixture
def it(tmp_path: Path) -> AbstractAsyncContextManager[KubeletWithProcesses]:
    """Return a cluster whose pods run in namespaces."""
    return cluster(tmp_path)
