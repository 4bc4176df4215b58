"""Fixtures for pytest: enabled by `pytest_plugins = ["localkube.fixtures"]` in a conftest.py.

Both yield the kubeconfig of a cluster that runs in a thread for the whole session; tests use separate namespaces.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from localkube import testing


@pytest.fixture(scope="session")
def kubernetes_api() -> Iterator[Path]:
    """Run an API server alone: CRDs, admission webhooks and all verbs, but no controllers and no nodes."""
    with testing.in_thread(testing.temporary) as kubeconfig:
        yield kubeconfig


@pytest.fixture(scope="session")
def kubernetes() -> Iterator[Path]:
    """Run a cluster with controllers and one node with modelled pods: scheduled, then ready, without processes."""
    with testing.in_thread(partial(testing.temporary, "modelled pods")) as kubeconfig:
        yield kubeconfig
