"""Defines the context that all pods of a node share: client, runner, clock, hosts files, and objects."""

from collections.abc import Callable

from msgspec import Struct

from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.controller.executor import Recorder
from kuberuntime.objects import meta, quantity
from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.accelerators.deviceallocations import DeviceAllocations
from localkube.kubelet.node.directoryremoval import PreviousLogs
from localkube.kubelet.node.hosts import HostsFiles
from localkube.kubelet.node.objects import ReferencedObjectReader
from localkube.kubelet.node.oomwatcher import OOMWatcher
from localkube.kubelet.processes.kubeletsettings import KubeletSettings
from localkube.kubelet.processes.runner import ProcessRunner
from localkube.kubelet.spec.fieldref import NodeFacts


class NodeContext(Struct, frozen=True, kw_only=True):
    """The kubelet's dependencies. `holder_of(port, uid)` returns another pod that uses a port on the shared network.

    `previous_logs` keeps the logs of deleted pods. `free(pod)` returns the devices of a pod to the ledger.
    """

    client: Client
    runner: ProcessRunner
    clock: Clock
    settings: KubeletSettings
    hosts: HostsFiles
    objects: ReferencedObjectReader
    events: Recorder
    port_user: Callable[[int, str], str]
    previous_logs: PreviousLogs
    devices: DeviceAllocations
    release_devices: Callable[[JSONObject], None]
    memory: OOMWatcher

    def facts(self, pod: JSONObject) -> NodeFacts:
        """Return the fields of the node that a pod can refer to."""
        allocatable = self.settings.allocatable.get(meta.spec(pod).get("nodeName", ""))
        return NodeFacts(self.settings.host_ip, quantity.parse_list(allocatable))
