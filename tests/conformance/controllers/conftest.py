"""Both clusters at the same time, with their own controllers and nobody else's."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import TypeVar

import pytest
import structlog
from tests.conformance.controllers.stage import Scenario, play
from tests.conformance.difference import Difference, parts
from tests.controlplane import build
from tests.controlplane.process import control_plane
from tests.integration.clusters.cluster import Cluster
from tests.integration.clusters.embedded import embedded_cluster
from tests.integration.clusters.keeper import Keeper
from tests.integration.clusters.kubernetes import KubernetesCluster, set_up

T = TypeVar("T")
CheckSame = Callable[[Scenario], None]


@dataclass(frozen=True)
class Clusters:
    """Both clusters, and the loop that speaks to them."""

    runner: asyncio.Runner
    embedded: Cluster
    real: Cluster


@pytest.fixture(scope="package")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    """Run both clusters."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    directory = tmp_path_factory.mktemp("plane")
    with asyncio.Runner() as runner, ExitStack() as stack:
        stack.enter_context(
            control_plane(
                build.assets(print, build.DEFAULT),
                directory,
                lambda plane: runner.run(set_up(KubernetesCluster(plane.kubeconfig))),
            )
        )
        ours = stack.enter_context(_kept(runner, embedded_cluster(tmp_path_factory.mktemp("embedded"))))
        yield Clusters(runner, ours, KubernetesCluster(directory / "kubeconfig"))


@pytest.fixture
def same(clusters: Clusters) -> CheckSame:
    """Play a scenario on both clusters; fail where their objects part."""

    async def both(scenario: Scenario) -> tuple[object, object]:
        ours, theirs = await asyncio.gather(play(clusters.embedded, scenario), play(clusters.real, scenario))
        return ours, theirs

    def check(scenario: Scenario) -> None:
        ours, theirs = clusters.runner.run(both(scenario))
        found = [Difference("scenario", *one) for one in parts("", ours, theirs)]
        assert not found, f"{len(found)} differences\n" + "\n".join(map(str, found))

    return check


@contextmanager
def _kept(runner: asyncio.Runner, context: AbstractAsyncContextManager[T]) -> Iterator[T]:
    """Enter an async context and leave it at the end, while the loop runs only in between."""
    keeper = runner.run(Keeper.enter(context))
    try:
        yield runner.run(keeper.value())
    finally:
        runner.run(keeper.leave())
