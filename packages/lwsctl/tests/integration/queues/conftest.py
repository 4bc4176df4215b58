"""Both clusters with the stand-in of Kueue, as for the tests of the controllers."""

from tests.integration.kueue.conftest import admission, kueue, manage, pytest_pyfunc_call, runner, running, space

__all__ = ["admission", "kueue", "manage", "pytest_pyfunc_call", "runner", "running", "space"]
