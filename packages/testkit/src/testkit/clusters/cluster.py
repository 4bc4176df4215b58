"""The seam between scenarios and their clusters: a simulated one, an embedded one, or real Kubernetes components.

They have the same nodes, and run the same webhooks and controllers.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from kuberuntime.access import kubeconfig
from kuberuntime.client.client import Client
from kuberuntime.client.http import HTTPTransport
from kuberuntime.client.transport import Transport
from kuberuntime.clock import Clock, SystemClock
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NODES as NODE_RESOURCE
from kuberuntime.objects.resources import PODS

NODES: Final = 64
NODES_PER_RACK: Final = 4
RACKS_PER_ZONE: Final = 4
RACK: Final = "rack"
ZONE: Final = "zone"
REST_SECONDS: Final = 60.0
"""Seconds that kube-controller-manager may take to untaint a node that is Ready again; it checks every second."""

RESTART_ALL: Final = 88
"""The exit code of a container after which a rule restarts all containers of its pod in place."""

START_DELAY: Final = "START_DELAY"
"""The variable of containers whose image arrives late."""

CAPACITY: Final = {"cpu": "32", "memory": "256Gi", "pods": "110"}


class ClusterBackend(Protocol):
    """A running cluster, with actions on pods that need its internals."""

    name: str

    @property
    def clock(self) -> Clock:
        """Return the clock of its components."""
        ...

    @property
    def kubeconfig(self) -> Path:
        """Return the kubeconfig of the administrator."""
        ...

    def transport(self, user_agent: str) -> Transport:
        """Open connections of one user."""
        ...

    async def await_namespace(self, client: Client, name: str) -> None:
        """Wait until pods may be created in a new namespace."""
        ...

    async def restart_container(self, client: Client, pod: JSONObject) -> None:
        """End the first container of a running pod, which then restarts."""
        ...

    async def restart_all(self, client: Client, pod: JSONObject) -> None:
        """Restart all containers of a running pod in place, by the rule of its first one on the exit code 88."""
        ...

    async def complete_container(self, client: Client, pod: JSONObject) -> None:
        """Let the only container of a running pod exit with code 0 and restart, as in pods of StatefulSets."""
        ...

    async def end_kept(self, client: Client, pod: JSONObject) -> None:
        """Report the end of a deleted pod that a finalizer keeps."""
        ...

    async def end_pod(self, client: Client, pod: JSONObject, code: int) -> None:
        """End the only container of a running pod whose own policy is Never: the pod becomes Failed or Succeeded."""
        ...

    def hung_node(self, client: Client, name: str, ready: str) -> AbstractAsyncContextManager[None]:
        """Keep a node from ending its pods until the context is left; `ready` is its condition meanwhile."""
        ...

    async def provide_volumes(self, client: Client, prefix: str, storage_class: str, count: int) -> None:
        """Provide so many volumes for claims of this class."""
        ...


@dataclass
class ServedCluster:
    """A cluster that clients reach over HTTP."""

    kubeconfig: Path
    clock: Clock = field(default_factory=SystemClock, init=False)

    def transport(self, user_agent: str) -> HTTPTransport:
        """Open connections of one user."""
        return HTTPTransport(kubeconfig.load({}, kubeconfig=str(self.kubeconfig)), user_agent=user_agent)


@asynccontextmanager
async def deleted_node(client: Client, name: str) -> AsyncIterator[None]:
    """Delete a node, and recreate it, without its pods, when the context is left."""
    key = ObjectKey("", name)
    node = await client.get(NODE_RESOURCE, key)
    await client.delete(NODE_RESOURCE, key)
    try:
        yield
    finally:
        metadata = {field: value for field, value in meta.metadata(node).items() if field in {"labels", "annotations"}}
        spec = {field: value for field, value in meta.spec(node).items() if field != "taints"}
        await client.create(NODE_RESOURCE, node | {"metadata": metadata | {"name": name}, "spec": spec})


async def report_ready(client: Client, name: str, status: str) -> None:
    """Set whether a node reports Ready."""
    patch = {"status": {"conditions": [{"type": "Ready", "status": status, "reason": "Tests"}]}}
    await client.patch(NODE_RESOURCE, ObjectKey("", name), patch, kind="strategic", subresource="status")


async def await_rest(client: Client, name: str) -> None:
    """Wait until a node is Ready, and no taint of an earlier test evicts its pods."""
    async with asyncio.timeout(REST_SECONDS):
        while not is_at_rest(await client.get(NODE_RESOURCE, ObjectKey("", name))):  # noqa: ASYNC110 - nothing tells when
            await asyncio.sleep(0.1)


def is_at_rest(node: JSONObject) -> bool:
    """Return whether a node is Ready and accepts pods; a cordoned node also counts."""
    driving = [taint for taint in meta.spec(node).get("taints") or [] if taint["effect"] == "NoExecute"]
    return meta.is_condition_true(node, "Ready") and not driving


async def pods_on(client: Client, node: str) -> list[JSONObject]:
    """Return the pods of a node."""
    return (await client.list(PODS, field_selector=f"spec.nodeName={node}")).items


class Manager(Protocol):
    """The manager on a cluster; it can be stopped, killed and restarted."""

    async def stop(self) -> None:
        """Stop the manager in an orderly way."""
        ...

    async def kill(self) -> None:
        """Kill the manager at any point."""
        ...

    async def start(self) -> None:
        """Start the manager and wait until it is ready."""
        ...

    def check(self) -> None:
        """Raise the exception that ended it, if any."""
        ...
