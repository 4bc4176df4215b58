"""Runs both clusters with the controllers, as the tests of the controllers do."""

from tests.integration.clusters.fixtures import manage, pytest_pyfunc_call, runner, running, space

__all__ = ["manage", "pytest_pyfunc_call", "runner", "running", "space"]
