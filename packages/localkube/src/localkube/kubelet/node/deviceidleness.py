"""Records how long the devices of pods have been idle, so that users can detect a hanging process."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final

import structlog

from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.errors import KubeError
from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import UID, JSONObject
from kuberuntime.objects.resources import PODS
from localkube.kubelet.accelerators.accelerator import device_uuid
from localkube.kubelet.accelerators.deviceallocations import DeviceAllocations
from localkube.kubelet.accelerators.usage import DeviceUse
from localkube.wellknown import DEVICES_IDLE

IDLE_AFTER: Final = timedelta(minutes=1)
"""The time after which a device is considered idle. It limits writes for a process with occasional load."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class DeviceIdleness:
    """Records the time since which each device of a pod is idle. `pod_of` returns the pod with a UID."""

    def __init__(
        self, client: Client, ledger: DeviceAllocations, clock: Clock, pod_of: Callable[[UID], JSONObject | None]
    ) -> None:
        self._client = client
        self._allocations = ledger
        self._clock = clock
        self._pod_of = pod_of
        self._since: dict[tuple[UID, str], datetime] = {}

    async def update(self, uses: Mapping[str, DeviceUse]) -> None:
        """Record the current usage of all devices, and write changes. Retry a failed write after the next check."""
        now = self._clock.now()
        allocated = {(uid, device_uuid(device)) for _, uid, device in self._allocations.allocated_devices()}
        idle = {(uid, uuid) for uid, uuid in allocated if uuid in uses and uses[uuid].busy == 0}
        self._since = {key: self._since.get(key, now) for key in sorted(idle)}
        for uid in sorted({uid for uid, _ in allocated}):
            pod = self._pod_of(uid)
            if pod is not None:
                await self._write(pod, self._describe(uid, now))

    def _describe(self, uid: UID, now: datetime) -> str:
        idle = {
            uuid: timestamps.render(since)
            for (owner, uuid), since in self._since.items()
            if owner == uid and now - since >= IDLE_AFTER
        }
        return json.dumps(idle, separators=(",", ":")) if idle else ""

    async def _write(self, pod: JSONObject, text: str) -> None:
        if meta.annotations(pod).get(DEVICES_IDLE, "") == text:
            return
        patch: JSONObject = {"metadata": {"uid": meta.uid(pod), "annotations": {DEVICES_IDLE: text or None}}}
        try:
            await self._client.patch(PODS, meta.key(pod), patch, kind="merge")
        except KubeError as error:
            log.warning("failed to write the idle devices", pod=str(meta.key(pod)), error=str(error))
