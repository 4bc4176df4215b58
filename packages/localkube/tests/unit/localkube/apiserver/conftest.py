"""Defines fixtures for tests of the API server."""

from contextlib import AbstractAsyncContextManager

import pytest
from tests.unit.localkube.apiserver.harness import Api, serving


@pytest.fixture(name="api")
def _api() -> AbstractAsyncContextManager[Api]:
    """Return a server that runs for the duration of the test."""
    return serving()
