"""Runs scenarios in virtual time and on Kubernetes, unless they need processes or connections."""

import pytest
from tests.integration.clusters.fixtures import manage, pytest_pyfunc_call, run, runner, space

__all__ = ["manage", "pytest_pyfunc_call", "runner", "running", "space"]

running = pytest.fixture(scope="package", params=["virtual", "kubernetes"])(run)
