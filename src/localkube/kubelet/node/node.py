"""What all pods of a node share: the client, the runner, the clock, and the files and objects that pods refer to."""

from collections.abc import Callable
from dataclasses import dataclass

from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.objects import quantity
from localkube.kubelet.node.hosts import Hosts
from localkube.kubelet.node.objects import Objects
from localkube.kubelet.node.podevents import Recorder
from localkube.kubelet.processes.runner import ProcessRunner
from localkube.kubelet.processes.settings import KubeletSettings
from localkube.kubelet.spec.fieldref import NodeFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeContext:
    """The kubelet's collaborators. `holder_of(port, uid)` names another pod that serves a port on the shared network.

    `discard(uid)` removes what a pod left on disk.
    """

    client: Client
    runner: ProcessRunner
    clock: Clock
    settings: KubeletSettings
    hosts: Hosts
    objects: Objects
    events: Recorder
    holder_of: Callable[[int, str], str]
    discard: Callable[[str], None]

    def facts(self) -> NodeFacts:
        """Return the fields of the node that pods may refer to."""
        return NodeFacts(self.settings.host_ip, quantity.parse_list(self.settings.allocatable))
