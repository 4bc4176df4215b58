"""Both clusters with the running controllers, as for the tests of the controllers."""

from tests.integration.clusters.fixtures import manage, pytest_pyfunc_call, runner, running, space

__all__ = ["manage", "pytest_pyfunc_call", "runner", "running", "space"]
