"""What holds for all unit tests."""

import pytest
import structlog


@pytest.fixture(autouse=True)
def _usual_logs() -> None:
    """Begin with structlog as it is by default: tests of other folders leave filters behind."""
    structlog.reset_defaults()
