"""Runs a real control plane that serves the kinds of all gang schedulers. Each test starts a manager."""

import asyncio
from collections.abc import Iterator

import pytest
from testkit.clusters.kubernetes import KubernetesCluster
from tests.controlplane import build
from tests.integration.clusters.fixtures import pytest_pyfunc_call, runner
from tests.kubernetes.gang.conftest import plane

__all__ = ["pytest_pyfunc_call", "runner"]


@pytest.fixture(scope="package")
def cluster(
    request: pytest.FixtureRequest, runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KubernetesCluster]:
    assert request.scope == "package", "each row would get a cluster of its own"
    with plane(runner, tmp_path_factory.mktemp(request.param), build.CLUSTERS[request.param]) as made:
        yield KubernetesCluster(made.kubeconfig)
