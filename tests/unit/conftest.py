"""What holds for all unit tests."""

import asyncio

import pytest
import structlog
from structlog.dev import ConsoleRenderer, plain_traceback
from tests import coroutines
from tests.simulation import virtualtime


def pytest_configure() -> None:
    """Log errors with plain tracebacks: to draw one with frames and locals takes a tenth of a second, and much is logged."""
    ConsoleRenderer.get_active().exception_formatter = plain_traceback


def pytest_runtest_setup() -> None:
    """Begin with structlog as it is by default: tests of other folders leave filters behind.

    A fixture would say the same and, thousands of times, take more than this.
    """
    structlog.reset_defaults()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine: in virtual time where it, or its module, is marked so."""
    return coroutines.run_test(
        pyfuncitem, virtualtime.run if pyfuncitem.get_closest_marker("virtual_time") else asyncio.run
    )
