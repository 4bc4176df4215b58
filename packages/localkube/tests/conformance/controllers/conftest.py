"""Runs both clusters at the same time. Each cluster runs only its own controllers."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from typing import TypeVar

import pytest
import structlog
from testkit.clusters.cluster import ClusterBackend
from testkit.clusters.embedded import embedded_cluster
from testkit.clusters.kubernetes import KubernetesCluster, create_nodes
from testkit.clusters.opencontexts import kept
from tests.conformance.conftest import is_live
from tests.conformance.controllers.stage import Scenario, play
from tests.conformance.difference import Difference, parts
from tests.conformance.recorded import RENEW, Recordings
from tests.controlplane import build
from tests.controlplane.process import control_plane

from kuberuntime.client.client import Client
from kuberuntime.objects.meta import JSON

T = TypeVar("T")
CheckSame = Callable[[Scenario], None]


@dataclass(frozen=True)
class Clusters:
    """The embedded cluster, the control plane if it runs, and the event loop of both clusters."""

    runner: asyncio.Runner
    embedded: ClusterBackend
    real: ClusterBackend | None


@pytest.fixture(scope="package")
def clusters(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    """Run both clusters. Without a control plane, use the recorded responses."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    directory = tmp_path_factory.mktemp("plane")
    with asyncio.Runner() as runner, ExitStack() as stack:
        real = None
        if is_live(request.config):
            stack.enter_context(
                control_plane(
                    build.assets(print, build.DEFAULT),
                    directory,
                    lambda plane: runner.run(_create_nodes(KubernetesCluster(plane.kubeconfig))),
                )
            )
            real = KubernetesCluster(directory / "kubeconfig")
        ours = stack.enter_context(kept(runner, embedded_cluster(tmp_path_factory.mktemp("embedded"))))
        yield Clusters(runner, ours, real)


@pytest.fixture
def same(clusters: Clusters, recordings: Recordings, request: pytest.FixtureRequest) -> CheckSame:
    """Run a scenario on both clusters. Fail if the resulting objects differ."""
    module, test = f"controllers-{request.node.path.stem}", request.node.name
    numbers = count()

    async def both(scenario: Scenario, key: str) -> tuple[JSON, JSON]:
        if clusters.real is None:
            return await play(clusters.embedded, scenario), recordings.of(module, key)
        return await asyncio.gather(play(clusters.embedded, scenario), play(clusters.real, scenario))

    def check(scenario: Scenario) -> None:
        key = f"{test}/{next(numbers)}"
        ours, theirs = clusters.runner.run(both(scenario, key))
        found = [Difference("scenario", *one) for one in parts("", ours, theirs)]
        assert not found, f"{len(found)} differences\n" + "\n".join(map(str, found))
        if clusters.real:
            recordings.note(module, key, theirs)
            if not request.config.getoption("renew"):
                assert recordings.of(module, key) == theirs, f"the recording is not as before: {RENEW}"

    return check


async def _create_nodes(cluster: KubernetesCluster) -> None:
    client = Client(cluster.transport("setup"))
    await create_nodes(client)
    await client.close()
