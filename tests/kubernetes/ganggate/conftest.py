"""Runs both clusters, and the shipped manager with the built-in gate enabled in its configuration."""

import pytest
from tests.integration.clusters.fixtures import Manage, pytest_pyfunc_call, runner, running, space
from tests.kubernetes.manager.deployed import deployed
from tests.kubernetes.manager.replicas import Replica

from leaderworkerset.core.gang.gate import BUILT_IN

__all__ = ["pytest_pyfunc_call", "runner", "running", "space"]


@pytest.fixture(scope="package")
def manage() -> Manage:
    """Return a function that runs the manager with this configuration."""
    configuration = {"gangSchedulingManagement": {"schedulerProvider": BUILT_IN.name}}
    return lambda cluster, directory: deployed(
        cluster, Replica(directory, "manager", directory / "manager.kubeconfig", configuration)
    )
