"""Simulates Kueue's controller for a LeaderWorkerSet, on both real and simulated clusters.

Written from observation of the real one (its rules are R-KQ-1 to R-KQ-71), reduced to a quota of groups: an admission
is the removal of the gates of a group's pods. Where templates ask for a topology, a group gets one domain, and its pods
hosts of it by their ranks. Pods of an older revision are started without quota while a StatefulSet rolls, as the real
one does, and noted in `unpaid`. `webhooks.py` is its admission.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.kueue.webhooks import GATES, PREFIX, QUEUE, TOPOLOGY

from kuberuntime.client.client import Client
from kuberuntime.errors import ConflictError, NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS, STATEFULSETS, Resource
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.resources import LEADERWORKERSETS

MANAGED: Final = PREFIX + "managed"
TOTAL: Final = PREFIX + "pod-group-total-count"
ROLE: Final = PREFIX + "role-hash"
HOSTNAME: Final = "kubernetes.io/hostname"
BATCH: Final = 1.0
"""The delay in seconds before changes of pods and StatefulSets are observed (R-KQ-3)."""

TERMINATED: Final[JSONObject] = {
    "type": "TerminationTarget",
    "status": "True",
    "reason": "WorkloadEvictedDueToPreempted",
}
"""The condition that Kueue writes to the pod status before it deletes the pod."""

ENDED: Final = ("Succeeded", "Failed")
SERVING: Final = PREFIX + "pod-group-serving"
RETRIABLE: Final = PREFIX + "retriable-in-group"

ON_A_HOST: Final = 2
"""The number of pods that fit on a host of a domain."""


@dataclass
class Kueue:
    """Admits groups in one namespace up to a quota, in index order. Groups in `evicted` are stopped.

    A group that does not serve is `finished` permanently when all its pods have ended and none of them will be
    recreated. Groups with random keys are admitted by their keys, the oldest first. `domains` are the hosts of each
    domain of the topology; a group that requests a domain gets the domain of its place in the queue.
    """

    client: Client
    namespace: str
    quota: int
    domains: Sequence[Sequence[str]] = ()
    evicted: set[int | str] = field(default_factory=set)
    admitted: set[int | str] = field(default_factory=set)
    finished: set[int | str] = field(default_factory=set)
    unpaid: list[str] = field(default_factory=list)
    overfull: list[str] = field(default_factory=list)

    async def run(self) -> None:
        """Reconcile in a loop."""
        while True:
            await asyncio.sleep(BATCH)
            try:
                await self._reconcile()
            except (ConflictError, NotFoundError):
                continue

    async def _reconcile(self) -> None:
        found = {meta.name(one): one for one in await self._list(LEADERWORKERSETS)}
        for name, lws in found.items():
            if meta.labels(lws).get(QUEUE):
                self._finish([pod for pod in await self._list(PODS) if meta.labels(pod).get(labels.NAME) == name])
                keyed = meta.spec(lws).get("groupIdentity") == "Hash"
                self._admit(_keys(await self._list(PODS)) if keyed else range(_groups(lws)))
                await self._follow(name, lws)

    def _finish(self, pods: Sequence[JSONObject]) -> None:
        """Finish the Workload of a group after all its pods have terminated (R-KQ-12, R-KQ-34)."""
        groups: dict[int | str, list[JSONObject]] = {}
        for pod in pods:
            if labels.GROUP_INDEX in meta.labels(pod):
                groups.setdefault(_index(pod), []).append(pod)
        for index, members in groups.items():
            notes = [meta.annotations(pod) for pod in members]
            have_ended = all(meta.status(pod).get("phase") in ENDED for pod in members)
            if have_ended and not any(SERVING in one for one in notes) and any(one.get(RETRIABLE) for one in notes):
                self.finished.add(index)

    def _admit(self, wanted: Sequence[int | str]) -> None:
        """Retain admitted groups that are required and not evicted. Admit others up to the quota (R-KQ-20, 60)."""
        out = self.evicted | self.finished
        self.admitted = {index for index in self.admitted if index in wanted and index not in out}
        for index in wanted:
            if len(self.admitted) < self.quota and index not in out:
                self.admitted.add(index)

    async def _follow(self, name: str, lws: JSONObject) -> None:
        sets = {meta.name(one): one for one in await self._list(STATEFULSETS)}
        pods = [pod for pod in await self._list(PODS) if meta.labels(pod).get(labels.NAME) == name]
        self._count(pods, int(meta.spec(lws)["leaderWorkerTemplate"]["size"]))
        for pod in pods:
            if meta.labels(pod).get(labels.GROUP_INDEX) is None or meta.is_deleting(pod):
                continue
            await self._tag(pod, lws)
            index = _index(pod)
            if index in self.evicted and not _is_gated(pod):
                await self._evict(pod)
            elif _is_gated(pod) and index in self.admitted:
                await self._start(pod)
            elif _is_gated(pod) and self._is_of_older_revision(pod, sets):
                self.unpaid.append(meta.name(pod))
                await self._start(pod)

    def _count(self, pods: list[JSONObject], size: int) -> None:
        """Record a group with more live pods than members, which Kueue would mark as finished (R-KQ-44)."""
        live: dict[str, int] = {}
        for pod in pods:
            if meta.is_deleting(pod) and not meta.spec(pod).get("nodeName"):
                continue
            group = meta.labels(pod).get(labels.GROUP_INDEX, "")
            live[group] = live.get(group, 0) + 1
        self.overfull += [group for group, count in live.items() if count > size]

    def _is_of_older_revision(self, pod: JSONObject, sets: Mapping[str, JSONObject]) -> bool:
        """Return whether a pod has an older revision than its StatefulSet (R-KQ-47)."""
        owner = meta.controller_of(pod) or {}
        status = meta.status(sets.get(owner.get("name", ""), {}))
        current, update = status.get("currentRevision"), status.get("updateRevision")
        return current != update and meta.labels(pod).get(labels.STATEFULSET_REVISION) == current

    async def _tag(self, pod: JSONObject, lws: JSONObject) -> None:
        """Mark a pod as managed, with the size of its group and its role (R-KQ-31)."""
        if MANAGED in meta.labels(pod):
            return
        role = "main"
        if meta.spec(lws)["leaderWorkerTemplate"].get("leaderTemplate"):
            role = "worker" if labels.LEADER_NAME in meta.annotations(pod) else "leader"
        size = meta.spec(lws)["leaderWorkerTemplate"]["size"]
        own = {"labels": {MANAGED: "true"}, "annotations": {TOTAL: str(size), ROLE: role}}
        await self._patch(pod, {"metadata": own})

    async def _start(self, pod: JSONObject) -> None:
        """Remove only the scheduling gates of this integration (R-KQ-32)."""
        left = [gate for gate in meta.spec(pod)["schedulingGates"] if gate["name"] not in GATES]
        await self._patch(pod, {"spec": {"schedulingGates": left or None} | self._place(pod)})

    async def _evict(self, pod: JSONObject) -> None:
        """Write the reason to the pod status, and then delete the pod (R-KQ-49, R-KQ-63)."""
        known = [one for one in meta.status(pod).get("conditions") or [] if one["type"] != TERMINATED["type"]]
        patch = {"metadata": {"uid": meta.uid(pod)}, "status": {"conditions": [*known, TERMINATED]}}
        await self.client.patch(PODS, meta.key(pod), patch, kind="merge", subresource="status")
        await self.client.delete(PODS, meta.key(pod), uid=meta.uid(pod))

    def _place(self, pod: JSONObject) -> JSONObject:
        """Select the host by rank in the group, if the pod requests a topology (R-KQ-51, R-KQ-53, R-KQ-56)."""
        if TOPOLOGY not in meta.annotations(pod):
            return {}
        place = sorted(self.admitted, key=str).index(_index(pod))
        host = self.domains[place][int(meta.labels(pod)[labels.WORKER_INDEX]) // ON_A_HOST]
        return {"nodeSelector": {HOSTNAME: host}}

    async def _list(self, resource: Resource) -> list[JSONObject]:
        return (await self.client.list(resource, namespace=self.namespace)).items

    async def _patch(self, pod: JSONObject, patch: dict[str, Any]) -> None:
        key = ObjectKey(self.namespace, meta.name(pod))
        own = patch.get("metadata") or {}
        await self.client.patch(PODS, key, patch | {"metadata": own | {"uid": meta.uid(pod)}}, kind="merge")


def _index(pod: JSONObject) -> int | str:
    """Return the group index of a pod, or its random key."""
    label = groupname.group_label(pod)
    return label if len(label) == groupname.KEY_CHARACTERS else int(label)


def _keys(pods: Sequence[JSONObject]) -> list[int | str]:
    """Return the keys of groups whose leaders remain, oldest first."""
    leaders = [pod for pod in pods if meta.labels(pod).get(labels.WORKER_INDEX) == "0" and not meta.is_deleting(pod)]
    return [
        _index(pod) for pod in sorted(leaders, key=lambda pod: (pod["metadata"]["creationTimestamp"], meta.name(pod)))
    ]


def _groups(lws: JSONObject) -> int:
    """Return the number of groups that may be admitted, including surge groups during an update (R-KQ-21)."""
    spec, status = meta.spec(lws), meta.status(lws)
    replicas = int(spec["replicas"])
    surge = spec["rolloutStrategy"]["rollingUpdateConfiguration"]["maxSurge"]
    is_surging = isinstance(surge, int) and surge > 0 and (status.get("updatedReplicas") or 0) < replicas
    return max(replicas, int(status.get("replicas") or 0)) if is_surging else replicas


def _is_gated(pod: JSONObject) -> bool:
    return any(gate["name"] in GATES for gate in meta.spec(pod).get("schedulingGates") or [])
