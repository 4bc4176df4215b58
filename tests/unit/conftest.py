"""What holds for all unit tests."""

import structlog
from structlog.dev import ConsoleRenderer, plain_traceback


def pytest_configure() -> None:
    """Log errors with plain tracebacks: to draw one with frames and locals takes a tenth of a second, and much is logged."""
    ConsoleRenderer.get_active().exception_formatter = plain_traceback


def pytest_runtest_setup() -> None:
    """Begin with structlog as it is by default: tests of other folders leave filters behind.

    A fixture would say the same and, thousands of times, take more than this.
    """
    structlog.reset_defaults()
