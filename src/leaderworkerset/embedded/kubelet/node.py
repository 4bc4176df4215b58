"""What all pods of a node share: the client, the runner, the clock, and the files and objects that pods refer to."""

from collections.abc import Callable
from dataclasses import dataclass

from leaderworkerset.api import quantity
from leaderworkerset.embedded.kubelet.container.fieldref import NodeFacts
from leaderworkerset.embedded.kubelet.hosts import Hosts
from leaderworkerset.embedded.kubelet.objects import Objects
from leaderworkerset.embedded.kubelet.pod.podevents import Recorder
from leaderworkerset.embedded.kubelet.runner import ProcessRunner
from leaderworkerset.embedded.kubelet.settings import KubeletSettings
from leaderworkerset.kube.client import Client
from leaderworkerset.kube.clock import Clock


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
        """Return what pods may ask about their node."""
        return NodeFacts(self.settings.host_ip, quantity.parse_list(self.settings.allocatable))
