"""Tests that are coroutines: each in an event loop of its own, where its package has none for all of them."""

import pytest
from tests import coroutines


@pytest.hookimpl
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    return coroutines.run_test(pyfuncitem)
