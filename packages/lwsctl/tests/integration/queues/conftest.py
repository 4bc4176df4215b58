"""Runs both clusters with simulated Kueue, as the tests of the controllers do."""

from tests.integration.kueue.conftest import admission, kueue, manage, pytest_pyfunc_call, runner, running, space

__all__ = ["admission", "kueue", "manage", "pytest_pyfunc_call", "runner", "running", "space"]
