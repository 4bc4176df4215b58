"""Maintains the simulated nodes, with their number, capacity and labels. All nodes run on this machine.

In: `NodeSettings`, from user options (`nodeoptions.py`). Out: Node objects, and at the start the writes that make the
nodes match the settings. Capacity affects only scheduling: on a node with 8 GPUs, pods can request 8. The defaults
exceed the capacity of any machine, so that pods with requests for real nodes are not pending. Smaller values simulate
pending pods.
"""

import platform
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.errors import AlreadyExistsError, NotFoundError
from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NODES
from kuberuntime.plan import guarded_patch
from localkube import wellknown
from localkube.controllers.nodes.nodeoptions import CAPACITY, LabelTemplate, TaintTemplate
from localkube.wellknown import GPU

KUBELET_VERSION: Final = "v{}.{}.0".format(*wellknown.KUBERNETES_VERSION)

DECLARED: Final = ("RestartAllContainersOnContainerExits",)
"""The declared kubelet features, which a scheduler can require."""
ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


class NodeSettings(Struct, frozen=True, kw_only=True):
    """The settings of the simulated nodes. `capacity` replaces or extends the defaults.

    `other_nodes` adds nodes with different settings. Their numbers follow, and `i` in labels counts all nodes.
    """

    count: int = 1
    labels: tuple[LabelTemplate, ...] = ()
    capacity: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[TaintTemplate, ...] = ()
    other_nodes: tuple["NodeSettings", ...] = ()

    @property
    def total(self) -> int:
        """Return the number of all nodes, including the nodes in `other_nodes`."""
        return self.count + sum(group.total for group in self.other_nodes)

    def settings_of_node(self, index: int) -> "NodeSettings":
        """Return the settings of node number `index`."""
        first = self.count
        for group in self.other_nodes:
            if first <= index < first + group.total:
                return group.settings_of_node(index - first)
            first += group.total
        return self

    def with_gpus(self, number: int) -> "NodeSettings":
        """Return the settings with this number of GPUs on each node."""
        return replace(self, capacity=dict(self.capacity) | {GPU: str(number)})

    def check(self) -> None:
        """Raise a `ValueError` if a template is invalid for one of the nodes."""
        for index in range(self.total):
            sort = self.settings_of_node(index)
            for label in sort.labels:
                label.value(index)
            for taint in sort.taints:
                taint.taint(index)


def node_names(settings: NodeSettings) -> list[str]:
    """Return the names of the nodes.

    >>> node_names(NodeSettings(count=2))
    ['node-0', 'node-1']
    """
    return [f"node-{index}" for index in range(settings.total)]


def capacity_of(settings: NodeSettings) -> dict[str, str]:
    """Return the capacity of the first nodes, all of which is allocatable."""
    return CAPACITY | dict(settings.capacity)


def build_node(settings: NodeSettings, index: int, now: datetime) -> JSONObject:
    """Build one node with its status."""
    name = f"node-{index}"
    settings = settings.settings_of_node(index)
    machine = platform.uname()
    system, architecture = machine.system.lower(), ARCHITECTURES.get(machine.machine, machine.machine)
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": system,
        "kubernetes.io/arch": architecture,
        wellknown.SIMULATED: "true",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels | {label.key: label.value(index) for label in settings.labels}},
        "spec": {"taints": [taint.taint(index) for taint in settings.taints]} if settings.taints else {},
        "status": {
            "capacity": capacity_of(settings),
            "allocatable": capacity_of(settings),
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": name}],
            "conditions": [_ready(now)],
            "nodeInfo": _node_info(machine.release, system, architecture),
            "declaredFeatures": list(DECLARED),
        },
    }


async def ensure_nodes(client: Client, settings: NodeSettings, clock: Clock) -> None:
    """Create, update and delete simulated nodes to match the settings. Write only differences."""
    nodes = [build_node(settings, index, clock.now()) for index in range(settings.total)]
    for node in nodes:
        await _ensure_node(client, node)
    for node in (await client.list(NODES)).items:
        if is_simulated(node) and meta.name(node) not in node_names(settings):
            await _remove_node(client, node)


def is_simulated(node: JSONObject) -> bool:
    """Return whether the node is simulated by this or an earlier version."""
    return any(meta.labels(node).get(name) == "true" for name in (wellknown.SIMULATED, wellknown.FORMER_SIMULATED))


async def _ensure_node(client: Client, node: JSONObject) -> None:
    try:
        live = await client.create(NODES, node)
    except AlreadyExistsError:
        live = await client.get(NODES, ObjectKey("", meta.name(node)))
    labels, taints = meta.labels(node), meta.spec(node).get("taints") or []
    removed: dict[str, str | None] = dict.fromkeys(meta.labels(live).keys() - labels.keys())
    if removed or meta.labels(live) != labels or (meta.spec(live).get("taints") or []) != taints:
        change = {"metadata": {"labels": removed | labels}, "spec": {"taints": taints}}
        guarded = guarded_patch(NODES, live, change)
        live = await client.patch(NODES, guarded.key, guarded.patch, kind="merge")
    if _status_differs(meta.status(live), meta.status(node)):
        await client.update(NODES, live | {"status": meta.status(node)}, subresource="status")


async def _remove_node(client: Client, node: JSONObject) -> None:
    with suppress(NotFoundError):
        await client.delete(NODES, meta.key(node), uid=meta.uid(node))


def _status_differs(live: JSONObject, desired: JSONObject) -> bool:
    """Return whether a status must be written, ignoring the times in conditions."""
    fields = ("capacity", "allocatable", "addresses", "nodeInfo", "declaredFeatures")
    ready = meta.is_condition_true({"status": live}, "Ready")
    return not ready or any(live.get(name) != desired[name] for name in fields)


def _ready(now: datetime) -> JSONObject:
    moment = timestamps.render(now)
    return {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "the cluster runs on this machine",
        "lastHeartbeatTime": moment,
        "lastTransitionTime": moment,
    }


def _node_info(kernel: str, system: str, architecture: str) -> JSONObject:
    return {
        "kernelVersion": kernel,
        "operatingSystem": system,
        "architecture": architecture,
        "kubeletVersion": KUBELET_VERSION,
        "containerRuntimeVersion": "processes://1",
        "osImage": platform.system(),
        "machineID": "",
        "systemUUID": "",
        "bootID": "",
        "kubeProxyVersion": "",
    }
