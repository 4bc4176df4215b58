"""Provides pytest fixtures. A conftest.py enables them with `pytest_plugins = ["localkube.fixtures"]`.

Both fixtures yield the kubeconfig of a cluster that runs in a thread for the whole session. Use a namespace per test.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from localkube import testing


@pytest.fixture(scope="session")
def kubernetes_api() -> Iterator[Path]:
    """Run only an API server with CRDs, admission webhooks and all verbs, but without controllers and nodes."""
    with testing.run_in_thread(testing.temporary) as kubeconfig:
        yield kubeconfig


@pytest.fixture(scope="session")
def kubernetes() -> Iterator[Path]:
    """Run a cluster with controllers and one node, whose simulated pods become ready without processes."""
    with testing.run_in_thread(partial(testing.temporary, "modelled pods")) as kubeconfig:
        yield kubeconfig
