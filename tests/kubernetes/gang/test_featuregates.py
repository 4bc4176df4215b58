"""Tests that `lws explain` and `lws doctor` name the component without the feature gate for native groups.

On the newer Kubernetes; with `THOROUGH=1`, as in `make nightly`, on both.
"""

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from testkit.clusters.kubernetes import KubernetesCluster
from testkit.examples import IS_THOROUGH
from tests.controlplane import build
from tests.controlplane.process import Plane, await_ready, kill, start_again
from tests.integration.clusters.objects import lws
from tests.integration.clusters.pools import add_to_pool, bound, half_a_node
from tests.integration.clusters.space import LiveScenario, space_of
from tests.integration.clusters.state import State, shows
from tests.kubernetes.gang.conftest import plane
from tests.kubernetes.manager.deployed import deployed
from tests.kubernetes.manager.replicas import Replica

from kuberuntime.client.client import Client
from kuberuntime.errors import ConnectionFailedError

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=[*build.CLUSTERS] if IS_THOROUGH else ["other_version"])
def without_gates(
    request: pytest.FixtureRequest, runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Plane]:
    """Run a separate control plane whose components are restarted without the feature gate."""
    with plane(runner, tmp_path_factory.mktemp(request.param), build.CLUSTERS[request.param]) as made:
        yield made


async def test_component_without_the_gate_is_named(without_gates: Plane, tmp_path: Path) -> None:
    cluster = KubernetesCluster(without_gates.kubeconfig)
    settings = {"gangSchedulingManagement": {"schedulerProvider": "native"}}
    replica = Replica(tmp_path, "manager", tmp_path / "manager.kubeconfig", settings)
    client = Client(cluster.transport("tests"))
    async with deployed(cluster, replica) as manager, space_of(cluster, manager, client) as space:
        await add_to_pool(space, range(1))
        lose_gate(without_gates, "kube-controller-manager")
        await groups_stay(space, without_gates)
        for component, started in (("kube-scheduler", 2), ("kube-apiserver", 1)):
            lose_gate(without_gates, component)
            with suppress(ConnectionFailedError):  # the API server has stopped
                await space.versions()
            await a_group_starts_in_part(space, without_gates, component, started)
    await client.close()


def lose_gate(made: Plane, component: str) -> None:
    """Restart a component without the feature gate."""
    kill(made, component)
    start_again(made, component, without="--feature-gates")
    await_ready(made)


async def groups_stay(space: LiveScenario, made: Plane) -> None:
    """Assert that the PodGroup of a deleted group is not deleted."""
    await space.bring_up(lws(replicas=1, size=2, template={"workerTemplate": half_a_node(space)}))
    await space.delete("web")
    await says(made, space, "kube-controller-manager did not delete PodGroup", "doctor", "--no-machine")


async def a_group_starts_in_part(space: LiveScenario, made: Plane, component: str, started: int) -> None:
    """Assert that only some pods of a group of four start. Without PodGroups, only the leader starts."""
    await space.create(lws(replicas=1, size=4, template={"workerTemplate": half_a_node(space)}))
    await space.until(shows(lambda state: bound(state, 1), [started]))
    explained = await says(made, space, "LWS-E055", "explain", "web")
    assert f"the native gang scheduling feature gate is disabled on {component}" in explained
    assert f"start {component} with --feature-gates=GenericWorkload=true" in explained
    await says(made, space, f"start {component} with", "doctor", "--no-machine")
    await space.delete("web")
    await space.until(is_gone)


def is_gone(state: State) -> None:
    assert not state.pods


async def says(made: Plane, space: LiveScenario, words: str, *command: str) -> str:
    """Wait until the output of a command contains these strings. Return the complete output."""
    typed = [sys.executable, "-m", "lwsctl.cli", *command, "-n", space.namespace]
    environment = {**os.environ, "KUBECONFIG": str(made.kubeconfig)}

    async def run() -> str:
        process = await asyncio.create_subprocess_exec(*typed, env=environment, stdout=asyncio.subprocess.PIPE)
        told, _ = await process.communicate()
        return " ".join(told.decode().split())

    return await space.eventually(run, lambda told: words in told, poll=2.0)
