"""Both clusters, and a manager that opens gates."""

import pytest
from tests.integration.lws.conftest import pytest_pyfunc_call, runner, running, space

from leaderworkerset.core.gang.builtin import BUILT_IN
from leaderworkerset.kinds.managed import managed
from leaderworkerset.kinds.registry import Registry

__all__ = ["pytest_pyfunc_call", "runner", "running", "space"]


@pytest.fixture(scope="package")
def kinds() -> Registry:
    """Return the kinds of a manager whose configuration names the built-in gate."""
    return managed(BUILT_IN.name)
