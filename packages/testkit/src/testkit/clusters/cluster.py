"""Defines the interface between scenarios and clusters, which are simulated, embedded or real.

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
"""The time in seconds until kube-controller-manager removes the taint of a Ready node. It checks every second."""

RESTART_ALL: Final = 88
"""The exit code of a container for which a rule restarts all containers of the pod in place."""

START_DELAY: Final = "START_DELAY"
"""The environment variable of containers whose image is pulled late."""

CAPACITY: Final = {"cpu": "32", "memory": "256Gi", "pods": "110"}


class ClusterBackend(Protocol):
    """A running cluster, with actions on pods that need access to its internals."""

    name: str

    @property
    def clock(self) -> Clock:
        """Return the clock of the cluster's components."""

    @property
    def kubeconfig(self) -> Path:
        """Return the kubeconfig of the administrator."""

    def transport(self, user_agent: str) -> Transport:
        """Return a transport for one user."""

    async def await_namespace(self, client: Client, name: str) -> None:
        """Wait until pods can be created in a new namespace."""

    async def restart_container(self, client: Client, pod: JSONObject) -> None:
        """Terminate the first container of a running pod. The container then restarts."""

    async def restart_all(self, client: Client, pod: JSONObject) -> None:
        """Restart all containers of a running pod in place. The rule of its first container requires exit code 88."""

    async def complete_container(self, client: Client, pod: JSONObject) -> None:
        """Make the only container of a running pod exit with code 0 and restart, as in StatefulSet pods."""

    async def end_kept(self, client: Client, pod: JSONObject) -> None:
        """Report the termination of a deleted pod that still has a finalizer."""

    async def end_pod(self, client: Client, pod: JSONObject, code: int) -> None:
        """Terminate the only container of a running pod with restart policy Never.

        The pod becomes Failed or Succeeded.
        """

    def hung_node(self, client: Client, name: str, ready: str) -> AbstractAsyncContextManager[None]:
        """Prevent a node from terminating pods for the duration of the `with` block.

        `ready` is the condition of the node.
        """

    async def provide_volumes(self, client: Client, prefix: str, storage_class: str, count: int) -> None:
        """Provide `count` volumes for claims of this class."""


@dataclass
class ServedCluster:
    """A cluster that clients access over HTTP."""

    kubeconfig: Path
    clock: Clock = field(default_factory=SystemClock, init=False)

    def transport(self, user_agent: str) -> HTTPTransport:
        """Return a transport for one user."""
        return HTTPTransport(kubeconfig.load({}, kubeconfig=str(self.kubeconfig)), user_agent=user_agent)


@asynccontextmanager
async def deleted_node(client: Client, name: str) -> AsyncIterator[None]:
    """Delete a node, and recreate it without its pods after the `with` block."""
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


async def wait_for_node(client: Client, name: str) -> None:
    """Wait until a node is Ready, and no taint of an earlier test evicts its pods."""
    async with asyncio.timeout(REST_SECONDS):
        while not is_schedulable(await client.get(NODE_RESOURCE, ObjectKey("", name))):  # noqa: ASYNC110 - nothing tells when
            await asyncio.sleep(0.1)


def is_schedulable(node: JSONObject) -> bool:
    """Return whether a node is Ready and accepts pods. A cordoned node also counts."""
    driving = [taint for taint in meta.spec(node).get("taints") or [] if taint["effect"] == "NoExecute"]
    return meta.is_condition_true(node, "Ready") and not driving


async def pods_on(client: Client, node: str) -> list[JSONObject]:
    """Return the pods on a node."""
    return (await client.list(PODS, field_selector=f"spec.nodeName={node}")).items


class Manager(Protocol):
    """The manager on a cluster, which can be stopped, killed and restarted."""

    async def stop(self) -> None:
        """Stop the manager gracefully."""

    async def kill(self) -> None:
        """Kill the manager at any time."""

    async def start(self) -> None:
        """Start the manager, and wait until it is ready."""

    def check(self) -> None:
        """Raise the exception that stopped the manager, if there is one."""
