"""Skips tests that need an unavailable kernel feature, and reports the reason."""

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from tests.integration.sandbox.harness import Machine, machine


def _why_not(directory: Path) -> str:
    async def ask() -> str:
        async with machine(directory) as made:
            isolated = made.capabilities.has_namespaces and made.capabilities.network == "isolated"
            return "" if isolated else "; ".join(made.capabilities.missing)

    return asyncio.run(ask())


@pytest.fixture(scope="session")
def refusal(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the reason why this machine does not permit namespaces, or an empty string if it permits them."""
    return _why_not(tmp_path_factory.mktemp("probe"))


@pytest.fixture(autouse=True)
def _skip_where_refused(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("sandbox") and (reason := request.getfixturevalue("refusal")):
        pytest.skip(f"this machine refuses namespaces: {reason}")


@pytest.fixture
def made(tmp_path: Path) -> AbstractAsyncContextManager[Machine]:
    """Return a runner that starts processes in namespaces."""
    return machine(tmp_path)
