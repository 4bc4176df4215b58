"""A control plane whose autoscaler decides every second, with a manager, and a metrics API."""

import asyncio
import sys
from collections.abc import Iterator

import pytest
from tests.controlplane import build
from tests.controlplane.process import (
    api_server,
    client_flags,
    controller_manager_flags,
    kwok_flags,
    start,
)
from tests.integration.autoscaling.metricsapi import MetricsAPI, serving
from tests.integration.clusters.cluster import managed, transport
from tests.integration.clusters.keeper import Keeper
from tests.integration.clusters.kubernetes import KubernetesCluster, set_up
from tests.integration.lws.conftest import Running, pytest_pyfunc_call, runner, space

from kuberuntime.client.client import Client

__all__ = ["pytest_pyfunc_call", "runner", "space"]


@pytest.fixture(scope="package")
def running(runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Run the control plane and the manager."""
    directory = tmp_path_factory.mktemp("plane")
    assets = build.assets(lambda text: print(text, file=sys.stderr, flush=True))  # noqa: T201 - progress
    with api_server(assets, directory) as plane:
        cluster = KubernetesCluster(plane.kubeconfig)
        runner.run(set_up(cluster))
        start(plane, "kube-controller-manager", controller_manager_flags(plane))
        start(plane, "kube-scheduler", client_flags(plane, "kube-scheduler"))
        start(plane, "kwok", kwok_flags(plane))
        keeper = runner.run(Keeper.enter(managed(cluster)))
        client = Client(transport(cluster, "tests"))
        try:
            yield Running(cluster, runner.run(keeper.value()), client)
        finally:
            runner.run(client.close())
            runner.run(keeper.leave())


@pytest.fixture(scope="package")
def metrics(runner: asyncio.Runner, running: Running) -> Iterator[MetricsAPI]:
    """Serve metrics that the API server passes on."""
    keeper = runner.run(Keeper.enter(serving(running.client)))
    try:
        yield runner.run(keeper.value())
    finally:
        runner.run(keeper.leave())
