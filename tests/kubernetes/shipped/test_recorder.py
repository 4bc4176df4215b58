"""Tests the records of a failed group that the shipped manager writes with its permissions."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from testkit.clusters.cluster import ClusterBackend
from testkit.clusters.embedded import OUTPUT, embedded_cluster
from testkit.clusters.kubernetes import KubernetesCluster
from tests.integration.clusters.kubeletlogs import logs_on
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import LIMIT, LiveScenario, space_of
from tests.integration.clusters.state import State
from tests.integration.lwsctl.explanations import typed
from tests.kubernetes.manager.deployed import deployed
from tests.kubernetes.manager.replicas import Replica

from kuberuntime.client.client import Client
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CONFIG_MAPS, PODS
from leaderworkerset.api import labels
from leaderworkerset.api.episode import Episode, Outcome
from leaderworkerset.api.progressannotations import parse_annotation
from lwsctl.cli.cluster import recordings

pytestmark = pytest.mark.slow

CONFIGURATION: Final = {"recorder": {"enable": True}}
SECRET: Final = "hf_0123456789abcdefghij"
"""A secret value in the format of a token."""


PROGRESS: Final = "::lws progress step=3 total=9"
SIDECAR: Final = {"name": "progress", "restartPolicy": "Always"}


def talking() -> JSONObject:
    """Return a pod template with a container that prints a token, and a sidecar that prints its progress."""
    template = pod_template()
    (container,) = template["spec"]["containers"]
    main = container | {"env": [{"name": OUTPUT, "value": f"using {SECRET}\nout of luck\n"}]}
    sidecar = container | SIDECAR | {"env": [{"name": OUTPUT, "value": f"{PROGRESS}\n"}]}
    return {"spec": template["spec"] | {"containers": [main], "initContainers": [sidecar]}}


async def until(space: LiveScenario, check: Callable[[list[Episode]], Any]) -> list[Episode]:
    """Wait until the episodes satisfy the condition. Return the episodes, the oldest first."""
    async with asyncio.timeout(LIMIT):
        while True:
            found = [one for _, one in await recordings.read_cluster(space.client, space.namespace) if one is not None]
            found.sort(key=lambda one: one.number)
            if check(found):
                return found
            await asyncio.sleep(0.1)


def says_its_progress(state: State) -> None:
    """Return whether the manager has recorded the progress in the leader log."""
    found = parse_annotation(meta.annotations(state.pods["web-0"]).get(labels.PROGRESS, ""))
    assert found is not None
    assert (found.step, found.total) == (3, 9)


async def fail(space: LiveScenario, name: str) -> None:
    """Simulate a container of a pod that exits with an error."""
    pod = await space.client.get(PODS, ObjectKey(space.namespace, name))
    await space.cluster.restart_container(space.client, pod)


async def live(cluster: ClusterBackend, directory: Path) -> tuple[list[Episode], list[JSONObject]]:
    """Simulate two failures of a group with a killed manager, and delete the LeaderWorkerSet. Return the records."""
    replica = Replica(directory, "manager", directory / "manager.kubeconfig", dict(CONFIGURATION))
    client = Client(cluster.transport("tests"))
    async with deployed(cluster, replica) as manager, space_of(cluster, manager, client) as space:
        asks = {labels.FOLLOW_PROGRESS: "true"}
        first = await space.bring_up(lws(replicas=1, size=2, template={"workerTemplate": talking()}, annotations=asks))
        if isinstance(cluster, KubernetesCluster):
            async with logs_on(client, first.pods["web-0"]["spec"]["nodeName"], {"main": "", "progress": PROGRESS}):
                await space.until(says_its_progress)
            assert "recorder.enable" in await typed(space, "history", "-n", space.namespace)
        else:
            await space.until(says_its_progress)
        await fail(space, "web-0-1")
        await until(space, lambda found: [one.outcome for one in found] == [Outcome.RECREATED])
        await space.until(lambda state: _is_new(first.pods, state.pods))
        await space.settled()
        await manager.kill()
        await manager.start()
        await fail(space, "web-0")
        await until(space, lambda found: [one.number for one in found] == [1, 2])
        await space.delete("web")
        found = await until(space, lambda found: len(found) == 2)
        kept = (await client.list(CONFIG_MAPS, namespace=space.namespace)).items
        shown = (
            await typed(space, "history", "-n", space.namespace)
            if isinstance(cluster, KubernetesCluster)
            else "web/0#1"
        )
        assert "web/0#1" in shown
    await client.close()
    assert "Traceback" not in replica.log.read_text()
    assert "forbidden" not in replica.log.read_text()
    return found, kept


def _is_new(before: Any, now: Any) -> None:
    assert before.keys() == now.keys()
    assert {meta.uid(pod) for pod in before.values()}.isdisjoint({meta.uid(pod) for pod in now.values()})


async def test_last_lines_of_all_ranks_are_kept_when_embedded(tmp_path: Path, runner: Any) -> None:
    async with embedded_cluster(tmp_path / "cluster") as cluster:
        (first, second), kept = await live(cluster, tmp_path)
    assert (first.first_rank, first.failed_pod, first.revision and first.revision.number) == (1, "web-0-1", 1)
    assert [rank.rank for rank in first.ranks] == [0, 1]
    lines = {"main": ("using [masked]", "out of luck"), "progress": (PROGRESS,)}
    assert [{one.name: one.logs[0] for one in rank.containers} for rank in first.ranks] == [lines, lines]
    assert second.failed_pod == "web-0"
    assert first.masked >= 2
    assert any("does not have permission to read Secrets" in note for note in first.notes)
    assert any(event.reason == "RecreateGroup" for event in first.events)
    assert not [obj for obj in kept if SECRET in str(obj)]


@pytest.mark.parametrize("cluster", ["kubernetes"], indirect=True)
async def test_failures_are_recorded_on_a_real_control_plane(cluster: KubernetesCluster, tmp_path: Path) -> None:
    (first, second), _ = await live(cluster, tmp_path)
    assert (first.failed_pod, first.revision and first.revision.number) == ("web-0-1", 1)
    assert {rank.pod for rank in first.ranks} == {"web-0", "web-0-1"}
    assert any(event.reason == "RecreateGroup" for event in first.events)
    assert second.failed_pod == "web-0"
