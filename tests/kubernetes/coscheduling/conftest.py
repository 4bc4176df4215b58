"""Runs control planes with kube-scheduler, the scheduler from scheduler-plugins, and the shipped manager."""

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from testkit.clusters.kubernetes import KubernetesCluster
from tests.controlplane import build
from tests.controlplane.process import LOOPBACK, Plane, control_plane, free_ports, start
from tests.integration.clusters.fixtures import Running, pytest_pyfunc_call, runner, space
from tests.integration.clusters.managed import set_up
from tests.kubernetes.gang.conftest import kept, serving
from tests.kubernetes.programs.build import MANIFESTS, SCHEDULER_PLUGINS

from kuberuntime.client.client import Client
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CUSTOM_RESOURCE_DEFINITIONS
from leaderworkerset.core.gang.coscheduling import COSCHEDULING

__all__ = ["pytest_pyfunc_call", "runner", "space"]

SCHEDULER: Final = "coscheduler"
"""The `schedulerName` of the profile that uses the plugin."""


@pytest.fixture(scope="package", params=build.CLUSTERS)
def running(
    request: pytest.FixtureRequest, runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """Run the Kubernetes versions one after the other. Skip the tests if the scheduler was not built."""
    program = SCHEDULER_PLUGINS.find()
    if program is None:
        pytest.skip(SCHEDULER_PLUGINS.missing)
    directory = tmp_path_factory.mktemp(request.param)
    assets = build.assets(lambda text: print(text, file=sys.stderr), build.CLUSTERS[request.param])  # noqa: T201 - progress

    def prepare(made: Plane) -> None:
        cluster = KubernetesCluster(made.kubeconfig)
        runner.run(set_up(cluster))
        runner.run(define(cluster, yaml.safe_load((program.parent / MANIFESTS / "crd.yaml").read_text())))

    with control_plane(assets, directory, prepare) as made:
        start(made, SCHEDULER, flags(made), program=str(program))
        with kept(runner, serving(KubernetesCluster(made.kubeconfig), directory, COSCHEDULING.name)) as one:
            yield one
        assert made.processes[SCHEDULER].poll() is None, made.log(SCHEDULER)


async def define(cluster: KubernetesCluster, definition: JSONObject) -> None:
    """Create the PodGroup CRD from the scheduler's release."""
    client = Client(cluster.transport("setup"))
    await client.apply(CUSTOM_RESOURCE_DEFINITIONS, definition, manager="tests")
    await client.close()


def flags(plane: Plane) -> list[str]:
    """Return the scheduler flags. The configuration is written to the directory of the control plane."""
    (port,) = free_ports(1)
    file = plane.directory / f"{SCHEDULER}.yaml"
    file.write_text(json.dumps(configuration(plane.kubeconfig)))
    return [
        f"--config={file}",
        f"--authentication-kubeconfig={plane.kubeconfig}",
        f"--authorization-kubeconfig={plane.kubeconfig}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--cert-dir={plane.directory / SCHEDULER}",
    ]


def configuration(kubeconfig: Path) -> dict[str, Any]:
    """Return a configuration with one profile, which uses the plugin and its queue order."""
    plugin = [{"name": "Coscheduling"}]
    profile = {
        "schedulerName": SCHEDULER,
        "plugins": {
            "multiPoint": {"enabled": plugin},
            "queueSort": {"enabled": plugin, "disabled": [{"name": "*"}]},
        },
        "pluginConfig": [{"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": 10}}],
    }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "profiles": [profile],
    }
