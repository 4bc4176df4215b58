"""Provides a kubelet without processes. Bound pods become ready, and deleted pods terminate, immediately."""

import asyncio

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.client.client import Client
from kuberuntime.errors import ConflictError, NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS


class InstantKubelet:
    """Makes bound pods ready, except for pods in `held`, and removes pods that are being deleted."""

    def __init__(self, client: Client) -> None:
        self.held: set[str] = set()
        self._client = client
        self._pods: asyncio.Queue[ObjectKey] = asyncio.Queue()
        self._informer = Informer(client, PODS)

    async def run(self) -> None:
        """Run until cancelled."""
        self._informer.subscribe(self._changed)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informer.run())
            while True:
                await self._attend(await self._pods.get())

    def release(self, pod: ObjectKey) -> None:
        """Make a held pod ready."""
        self.held.discard(pod.name)
        self._pods.put_nowait(pod)

    def _changed(self, change: Change) -> None:
        if change.new is not None:
            self._pods.put_nowait(meta.key(change.new))

    async def _attend(self, key: ObjectKey) -> None:
        pod = self._informer.store.get(key)
        if pod is None or not meta.spec(pod).get("nodeName"):
            return
        try:
            if meta.is_deleting(pod):
                await self._client.delete(PODS, key, uid=meta.uid(pod), grace_period=0)
            elif key.name not in self.held and meta.status(pod).get("phase") == "Pending":
                await self._report(pod)
        except (NotFoundError, ConflictError):
            return

    async def _report(self, pod: JSONObject) -> None:
        others = [condition for condition in meta.status(pod).get("conditions") or [] if condition["type"] != "Ready"]
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        status = {"phase": "Running", "podIP": "10.0.0.1", "conditions": [*others, ready]}
        patch = {"metadata": {"uid": meta.uid(pod)}, "status": status}
        await self._client.patch(PODS, meta.key(pod), patch, kind="merge", subresource="status")
