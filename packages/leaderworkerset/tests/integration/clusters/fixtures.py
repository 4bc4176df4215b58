"""Provides clusters for the session, a namespace for each test, and support for coroutine tests."""

import asyncio
import inspect
import logging
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

import pytest
import structlog
from testkit.clusters.cluster import ClusterBackend, Manager
from testkit.clusters.embedded import embedded_cluster
from testkit.clusters.kubernetes import KubernetesCluster
from testkit.clusters.opencontexts import kept
from testkit.virtualtime import SingleThreadLoop
from tests.controlplane import build
from tests.controlplane.process import Plane, control_plane
from tests.integration.clusters.managed import managed, set_up
from tests.integration.clusters.space import LiveScenario, space_of
from tests.integration.clusters.virtual import virtual_cluster

from kuberuntime.client.client import Client

T = TypeVar("T")

Manage: TypeAlias = Callable[[ClusterBackend, Path], AbstractAsyncContextManager[Manager]]
"""Runs a manager on a cluster. It may write to the directory."""

LIMIT = 240.0
"""The timeout for one test in seconds, in addition to the limits of its waits."""


@dataclass
class Running:
    """A cluster with the LeaderWorkerSet CRD, and a client with administrator permissions."""

    cluster: ClusterBackend
    manager: Manager
    client: Client
    runner: asyncio.Runner | None = None
    """The event loop of a cluster with virtual time."""


@pytest.fixture(scope="package")
def runner() -> Iterator[asyncio.Runner]:
    """Run all tests of the session in one event loop. Only the log of a failed test contains errors."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="package")
def manage() -> Manage:
    """Return a function that runs a manager in the same way as `lws up`.

    A package with another manager has another fixture of this name.
    """
    return lambda cluster, _directory: managed(cluster)


def run(
    request: pytest.FixtureRequest, runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory, manage: Manage
) -> Iterator[Running]:
    """Run the clusters one after the other."""
    directory = tmp_path_factory.mktemp(request.param)
    start = {"virtual": _virtual, "embedded": _embedded}.get(request.param, _kubernetes)
    with (
        asyncio.Runner(loop_factory=SingleThreadLoop) if start is _virtual else nullcontext(runner) as own,
        start(own, directory, request) as cluster,
        kept(own, manage(cluster, directory)) as manager,
    ):
        client = Client(cluster.transport("tests"))
        yield Running(cluster, manager, client, own)
        own.run(client.close())


running = pytest.fixture(scope="package", params=["embedded", "kubernetes"])(run)


@pytest.fixture
def space(runner: asyncio.Runner, running: Running) -> Iterator[LiveScenario]:
    """Return a new namespace."""
    with kept(running.runner or runner, space_of(running.cluster, running.manager, running.client)) as one:
        yield one


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test in the event loop of the session."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: value for name, value in pyfuncitem.funcargs.items() if name in wanted}
    running = pyfuncitem.funcargs.get("running")
    runner = (isinstance(running, Running) and running.runner) or pyfuncitem.funcargs["runner"]
    assert isinstance(runner, asyncio.Runner)
    runner.run(_within_limit(pyfuncitem.obj(**arguments)))
    return True


async def _within_limit(test: Coroutine[None, None, None]) -> None:
    async with asyncio.timeout(LIMIT):
        await test


@contextmanager
def _virtual(runner: asyncio.Runner, directory: Path, _: pytest.FixtureRequest) -> Iterator[ClusterBackend]:
    with kept(runner, virtual_cluster(directory)) as cluster:
        yield cluster


@contextmanager
def _embedded(runner: asyncio.Runner, directory: Path, _: pytest.FixtureRequest) -> Iterator[ClusterBackend]:
    with kept(runner, embedded_cluster(directory)) as cluster:
        yield cluster


@contextmanager
def _kubernetes(runner: asyncio.Runner, directory: Path, request: pytest.FixtureRequest) -> Iterator[ClusterBackend]:
    terminal = request.config.get_terminal_writer()
    try:
        assets = build.assets(lambda text: terminal.line(f"control plane: {text}"), build.CLUSTERS[request.param])
    except build.BuildError as error:
        pytest.fail(f"the control plane for tests cannot be built: {error}", pytrace=False)

    def prepare(plane: Plane) -> None:
        runner.run(set_up(KubernetesCluster(plane.kubeconfig)))

    with control_plane(assets, directory, prepare) as plane:
        yield KubernetesCluster(plane.kubeconfig)
