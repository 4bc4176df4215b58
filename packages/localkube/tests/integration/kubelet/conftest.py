"""A kubelet with processes for tests that ask for one."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from tests.integration.kubelet.harness import KubeletWithProcesses, cluster


@pytest.fixture
def it(tmp_path: Path) -> AbstractAsyncContextManager[KubeletWithProcesses]:
    """Return a cluster whose pods have namespaces."""
    return cluster(tmp_path)
