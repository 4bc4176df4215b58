"""Runs both clusters with simulated Kueue, in the same way as the controller tests."""

from tests.integration.kueue.conftest import admission, kueue, manage, pytest_pyfunc_call, runner, running, space

__all__ = ["admission", "kueue", "manage", "pytest_pyfunc_call", "runner", "running", "space"]
