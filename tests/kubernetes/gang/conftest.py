"""Runs both clusters with the gang scheduler kinds, and the shipped manager, which detects the kinds."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

import pytest
from testkit.clusters.cluster import ClusterBackend
from testkit.clusters.embedded import embedded_cluster
from testkit.clusters.kubernetes import KubernetesCluster
from testkit.clusters.opencontexts import OpenContext
from tests.controlplane import build
from tests.controlplane.process import Plane, control_plane
from tests.gangdefinitions import COSCHEDULING_DEFINITION, VOLCANO_DEFINITION
from tests.integration.clusters.fixtures import Running, pytest_pyfunc_call, runner, space
from tests.integration.clusters.managed import set_up
from tests.kubernetes.manager.deployed import deployed
from tests.kubernetes.manager.replicas import Replica

from kuberuntime.client.client import Client
from kuberuntime.objects.resources import CUSTOM_RESOURCE_DEFINITIONS
from leaderworkerset.api import kubernetesfeatures
from leaderworkerset.core.gang.coscheduling import COSCHEDULING
from leaderworkerset.core.gang.gangs import AUTO
from leaderworkerset.core.gang.volcano import VOLCANO
from leaderworkerset.manager import gangdetection

__all__ = ["pytest_pyfunc_call", "runner", "space"]

GATES: Final = {"1.36": "GenericWorkload=true,GangScheduling=true", "1.37": "GenericWorkload=true"}
SERVED: Final = {"1.36": "v1alpha2", "1.37": "v1beta1"}
DEFINED: Final = {VOLCANO.name, COSCHEDULING.name}
DEFINED_WITHIN: Final = 60.0
"""The timeout in seconds until these kinds are served on a busy machine."""


@pytest.fixture(scope="package", params=["embedded", *build.CLUSTERS])
def running(
    request: pytest.FixtureRequest,
    runner: asyncio.Runner,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Running]:
    """Run the clusters one after the other."""
    directory = tmp_path_factory.mktemp(request.param)
    if request.param == "embedded":
        with kept(runner, started(directory)) as one:
            yield one
        return
    with (
        plane(runner, directory, build.CLUSTERS[request.param]) as made,
        kept(runner, serving(KubernetesCluster(made.kubeconfig), directory)) as one,
    ):
        yield one


@contextmanager
def kept(runner: asyncio.Runner, context: object) -> Iterator[Running]:
    """Enter an async context, and exit it after the test. The loop also runs tests between these steps."""
    keeper: OpenContext[Running] = runner.run(OpenContext.enter(context))  # type: ignore[arg-type]
    try:
        yield runner.run(keeper.value())
    finally:
        runner.run(keeper.leave())


def scheduling(version: str) -> tuple[str, str]:
    """Return the flag and the feature gates with which a Kubernetes version serves PodGroups.

    Skip the test if it cannot.
    """
    if version not in SERVED:
        pytest.skip(f"Kubernetes {version} has no {kubernetesfeatures.ALPHA_POD_GROUPS.name}")
    return f"--runtime-config=scheduling.k8s.io/{SERVED[version]}=true", GATES[version]


@asynccontextmanager
async def started(directory: Path) -> AsyncIterator[Running]:
    """Run the embedded cluster with the kinds that it serves."""
    async with embedded_cluster(directory) as cluster:
        await define(cluster)
        async with serving(cluster, directory) as one:
            yield one


@asynccontextmanager
async def serving(cluster: ClusterBackend, directory: Path, provider: str = AUTO) -> AsyncIterator[Running]:
    """Run the manager on a cluster. By default, it detects the served gang schedulers."""
    client = Client(cluster.transport("tests"))
    replica = Replica(
        directory,
        "manager",
        directory / "manager.kubeconfig",
        {
            "gangSchedulingManagement": {"schedulerProvider": provider},
            "featureGates": {"WorkloadAwareScheduling": True},
        },
    )
    async with deployed(cluster, replica) as manager:
        yield Running(cluster, manager, client)
    await client.close()


@contextmanager
def plane(runner: asyncio.Runner, directory: Path, version: str) -> Iterator[Plane]:
    """Run a control plane with gang scheduling."""
    serve, gates = scheduling(version)
    assets = build.assets(lambda text: print(text, file=sys.stderr, flush=True), version)  # noqa: T201 - progress

    def prepare(made: Plane) -> None:
        cluster = KubernetesCluster(made.kubeconfig)
        runner.run(set_up(cluster))
        runner.run(define(cluster))

    with control_plane(assets, directory, prepare, (serve,), gates=gates) as made:
        yield made


async def define(cluster: ClusterBackend) -> None:
    """Create the CRDs of schedulers that do not run in this test. Wait until a starting manager detects them."""
    client = Client(cluster.transport("setup"))
    for definition in (VOLCANO_DEFINITION, COSCHEDULING_DEFINITION):
        await client.apply(CUSTOM_RESOURCE_DEFINITIONS, definition, manager="tests")
    async with asyncio.timeout(DEFINED_WITHIN):
        while True:
            served = await gangdetection.detect(client)
            if served >= DEFINED:
                break
            await asyncio.sleep(0.1)
    await client.close()
