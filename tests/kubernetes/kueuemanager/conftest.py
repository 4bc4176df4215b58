"""Runs a real control plane with Kueue, and a queue with a quota in the namespace of each test."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pytest
from testkit.clusters.cluster import ZONE
from testkit.clusters.opencontexts import OpenContext
from tests.integration.clusters.fixtures import Running, manage, pytest_pyfunc_call, runner, running, space
from tests.integration.clusters.space import LiveScenario
from tests.kubernetes.programs import build
from tests.kueue.program import GROUP, kueue_manager, named, typed

from kuberuntime.client.client import Client
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import Resource

__all__ = ["manage", "pytest_pyfunc_call", "runner", "running", "space"]

FLAVORS: Final = Resource(GROUP, "v1beta2", "resourceflavors", "ResourceFlavor", namespaced=False)
CLUSTER_QUEUES: Final = Resource(GROUP, "v1beta2", "clusterqueues", "ClusterQueue", namespaced=False)
LOCAL_QUEUES: Final = Resource(GROUP, "v1beta2", "localqueues", "LocalQueue")
WORKLOADS: Final = Resource(GROUP, "v1beta2", "workloads", "Workload")
TOPOLOGIES: Final = Resource(GROUP, "v1beta2", "topologies", "Topology", namespaced=False)
LOCAL_QUEUE: Final = "team"


@dataclass
class Queue:
    """The queue of the test namespace. Its CPU quota limits the running pods, and each pod requests one CPU."""

    client: Client
    namespace: str

    async def make(self, cpus: int, *, levels: tuple[str, ...] = ()) -> None:
        """Create the queue, with a topology if levels are specified."""
        spec: JSONObject = {}
        if levels:
            await self._create(TOPOLOGIES, {"levels": [{"nodeLabel": level} for level in levels]})
            spec = {"nodeLabels": {ZONE: "z0"}, "topologyName": self.namespace}
        await self._create(FLAVORS, spec)
        await self._create(CLUSTER_QUEUES, {"namespaceSelector": {}} | self._quota(cpus))
        metadata = {"name": LOCAL_QUEUE, "namespace": self.namespace}
        queue = {"metadata": metadata, "spec": {"clusterQueue": self.namespace}}
        await self.client.create(LOCAL_QUEUES, typed(LOCAL_QUEUES) | queue)

    async def allow(self, cpus: int) -> None:
        """Change the quota of the queue."""
        patch = {"spec": self._quota(cpus)}
        await self.client.patch(CLUSTER_QUEUES, ObjectKey("", self.namespace), patch, kind="merge")

    async def workloads(self) -> list[JSONObject]:
        """Return the Workloads that Kueue creates for groups in the namespace."""
        return (await self.client.list(WORKLOADS, namespace=self.namespace)).items

    async def activate(self, workload: str, *, active: bool) -> None:
        """Request that Kueue evicts a group or readmits it."""
        patch = {"spec": {"active": active}}
        await self.client.patch(WORKLOADS, ObjectKey(self.namespace, workload), patch, kind="merge")

    async def forget(self, workload: str) -> None:
        """Delete a Workload. Kueue creates a new Workload for its group."""
        await self.client.delete(WORKLOADS, ObjectKey(self.namespace, workload))

    def _quota(self, cpus: int) -> JSONObject:
        flavor = {"name": self.namespace, "resources": [{"name": "cpu", "nominalQuota": str(cpus)}]}
        return {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}]}

    async def _create(self, resource: Resource, spec: JSONObject) -> None:
        """Create a cluster-scoped object named after the namespace. Only tests in this namespace use it."""
        await self.client.create(resource, typed(resource) | named(self.namespace) | {"spec": spec})


@pytest.fixture(scope="package")
def kueue(runner: asyncio.Runner, running: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Run Kueue together with the manager. Skip the test if Kueue was not built."""
    if build.KUEUE.find() is None:
        pytest.skip(build.KUEUE.missing)
    directory = tmp_path_factory.mktemp("kueue")
    keeper = runner.run(OpenContext.enter(kueue_manager(running.cluster.kubeconfig, running.client, directory)))
    runner.run(keeper.value())
    yield
    runner.run(keeper.leave())


@pytest.fixture
def queue(space: LiveScenario, kueue: None) -> Queue:
    """Return the queue of a namespace that the test creates."""
    del kueue
    return Queue(space.client, space.namespace)
