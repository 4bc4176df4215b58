"""Runs both clusters with the controllers, in the same way as the controller tests."""

from tests.integration.clusters.fixtures import manage, pytest_pyfunc_call, runner, running, space

__all__ = ["manage", "pytest_pyfunc_call", "runner", "running", "space"]
