"""What holds for all unit tests."""

import asyncio
import inspect

import pytest
import structlog
from structlog.dev import ConsoleRenderer, plain_traceback
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
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    run = virtualtime.run if pyfuncitem.get_closest_marker("virtual_time") else asyncio.run
    run(pyfuncitem.obj(**arguments))
    return True
