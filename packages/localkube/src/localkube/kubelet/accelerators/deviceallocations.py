"""Manages the device allocations of all nodes for the lifetime of the kubelet.

The record of a pod is in its annotation `wellknown.DEVICES`, which is written before its first container starts. After
a restart, the ledger is rebuilt from these records.
"""

import json
from collections.abc import Iterable, Mapping, Sequence

from kuberuntime.objects import meta, podstate
from kuberuntime.objects.meta import UID, JSONObject
from localkube import wellknown
from localkube.kubelet.accelerators import allocation
from localkube.kubelet.accelerators.accelerator import device_uuid
from localkube.kubelet.accelerators.allocation import ShortageError
from localkube.kubelet.spec import podspec

Record = Mapping[str, Sequence[str]]
"""The devices of a pod by container name."""


class DeviceAllocations:
    """Allocates devices to pods. If `devices` is empty, GPUs are simulated, and devices are not allocated.

    If devices are `exposed`, a container that does not request devices sees all healthy devices of its node.
    """

    def __init__(self, devices: Mapping[str, Sequence[str]], *, exposed: bool = False) -> None:
        self._devices = devices
        self._exposed = exposed
        self._records: dict[UID, tuple[str, Record]] = {}
        self._waiting: set[UID] = set()
        self.unhealthy: Mapping[str, str] = {}
        """The reason why a device is unavailable, by UUID."""

    @property
    def is_real(self) -> bool:
        """Return whether the nodes have real devices."""
        return bool(self._devices)

    def restore(self, pods: Iterable[JSONObject]) -> None:
        """Restore the records of an earlier run for pods that have not terminated, if the devices still exist."""
        for pod in pods:
            record = recorded_devices(pod)
            node = meta.spec(pod).get("nodeName", "")
            if not record or podstate.has_ended(pod) or not allocation.fits(pod, record):
                continue
            if {device for own in record.values() for device in own} <= set(self._free_devices(node)):
                self._records[meta.uid(pod)] = (node, record)

    def allocate(self, pod: JSONObject) -> Record:
        """Return the devices of a pod, or allocate free devices of its node. Can raise a `ShortageError`."""
        uid, node = meta.uid(pod), meta.spec(pod).get("nodeName", "")
        if not self.is_real or not allocation.requests_any(pod):
            return {}
        if uid not in self._records:
            busy = {device for name, _, device in self.allocated_devices() if name == node}
            try:
                record = allocation.allocate(pod, self._free_devices(node), busy)
            except ShortageError as error:
                self._waiting.add(uid)
                raise ShortageError(f"node {node}: {error}{self._describe_failures(node)}") from error
            self._records[uid] = (node, record)
        self._waiting.discard(uid)
        return self._records[uid][1]

    def visible_devices(self, pod: JSONObject) -> Record | None:
        """Return the devices that are visible to a pod's containers, or None if GPUs are simulated."""
        if not self.is_real:
            return None
        _, record = self._records.get(meta.uid(pod), ("", {}))
        if not self._exposed:
            return record
        others = self.healthy_devices(meta.spec(pod).get("nodeName", ""))
        return {container["name"]: others for container in podspec.all_containers(pod)} | dict(record)

    def release(self, uid: UID) -> set[UID]:
        """Free the devices of a pod without remaining processes. Return the pods that wait for devices."""
        self._waiting.discard(uid)
        return set(self._waiting) if self._records.pop(uid, None) else set()

    @property
    def records(self) -> Mapping[UID, Record]:
        """Return the devices of each pod that has devices."""
        return {uid: record for uid, (_, record) in self._records.items()}

    def allocated_devices(self) -> list[tuple[str, UID, str]]:
        """Return the node, owner and identifier of each allocated device."""
        return [
            (node, uid, device)
            for uid, (node, record) in self._records.items()
            for device in dict.fromkeys(device for own in record.values() for device in own)
        ]

    @property
    def nodes(self) -> list[str]:
        """Return the nodes with real devices."""
        return list(self._devices)

    def devices_of_node(self, node: str) -> Sequence[str]:
        """Return all devices of a node."""
        return self._devices.get(node, ())

    def healthy_devices(self, node: str) -> list[str]:
        """Return the healthy devices of a node."""
        return [device for device in self.devices_of_node(node) if device_uuid(device) not in self.unhealthy]

    def _free_devices(self, node: str) -> list[str]:
        allocated = {device for _, _, device in self.allocated_devices()}
        return [device for device in self.healthy_devices(node) if device not in allocated]

    def _describe_failures(self, node: str) -> str:
        """Describe the failed devices of a node in a clause."""
        uuids = dict.fromkeys(map(device_uuid, self.devices_of_node(node)))
        return "".join(f"; {uuid} is unhealthy: {self.unhealthy[uuid]}" for uuid in uuids if uuid in self.unhealthy)


def recorded_devices(pod: JSONObject) -> dict[str, list[str]]:
    """Return the devices in the annotation of a pod, or an empty value if the annotation is missing or invalid."""
    try:
        record = json.loads(meta.annotations(pod).get(wellknown.DEVICES, "{}"))
    except ValueError:
        return {}
    if not isinstance(record, dict):
        return {}
    return {
        name: devices
        for name, devices in record.items()
        if isinstance(devices, list) and all(isinstance(device, str) for device in devices)
    }


def annotation_value(record: Record) -> str:
    """Return the value of the annotation.

    >>> annotation_value({"main": ("GPU-1",)})
    '{"main":["GPU-1"]}'
    """
    return json.dumps({name: list(devices) for name, devices in record.items()}, separators=(",", ":"))
