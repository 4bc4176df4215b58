"""A stand-in of Kueue for simulated clusters: what its webhooks and its reconciler do around a LeaderWorkerSet.

Written from observation of the real one (its rules are R-KQ-1 to R-KQ-71), reduced to a quota of groups: an admission
is the removal of the gates of a group's pods. It starts pods of an older revision without quota while a StatefulSet
rolls, as the real one does, and notes it in `unpaid`.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.simulation.cluster import NAMESPACE, World
from tests.simulation.product import WEBHOOK_HOST

from kuberuntime.errors import ConflictError, NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import MUTATING_WEBHOOK_CONFIGURATIONS, PODS, STATEFULSETS
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.webhooks import configurations, review
from leaderworkerset.webhooks.review import Review
from leaderworkerset.webhooks.spec import WebhookSpec

PREFIX: Final = "kueue.x-k8s.io/"
QUEUE: Final = PREFIX + "queue-name"
PARENT: Final = PREFIX + "pod-suspending-parent"
MANAGED: Final = PREFIX + "managed"
TOTAL: Final = PREFIX + "pod-group-total-count"
ROLE: Final = PREFIX + "role-hash"
GATES: Final = (PREFIX + "admission", PREFIX + "topology")
FRAMEWORK: Final = "leaderworkerset.x-k8s.io/leaderworkerset"
CONFIGURATION: Final = "kueue-mutating-webhook-configuration"
BATCH: Final = 1.0
"""Seconds by which changes of pods and StatefulSets are noticed late (R-KQ-3)."""


def stamp_leaderworkerset(review: Review) -> JSONObject:
    """Stamp the templates, and leave an empty `type` where there was no strategy (R-KQ-10 to R-KQ-13)."""
    obj = review.object
    queue = meta.labels(obj).get(QUEUE)
    if not queue:
        return obj
    spec = meta.spec(obj)
    template = spec["leaderWorkerTemplate"]
    stamped = {
        name: _stamped(template[name], queue) for name in ("leaderTemplate", "workerTemplate") if template.get(name)
    }
    strategy = spec.get("rolloutStrategy") or {"type": ""}
    return obj | {"spec": spec | {"leaderWorkerTemplate": template | stamped, "rolloutStrategy": strategy}}


def _stamped(template: JSONObject, queue: str) -> JSONObject:
    own = {
        "labels": meta.labels(template) | {QUEUE: queue},
        "annotations": meta.annotations(template) | {PARENT: FRAMEWORK, PREFIX + "pod-group-serving": "true"},
    }
    return template | {"metadata": meta.metadata(template) | own}


def gate_pod(review: Review) -> JSONObject:
    """Gate a pod of a stamped template (R-KQ-30)."""
    pod = review.object
    if PARENT not in meta.annotations(pod):
        return pod
    gates = [*(meta.spec(pod).get("schedulingGates") or []), *({"name": gate} for gate in GATES)]
    return pod | {"spec": meta.spec(pod) | {"schedulingGates": gates}}


WEBHOOKS: Final = (
    WebhookSpec(
        name="mleaderworkerset.kueue.x-k8s.io",
        path="/kueue/leaderworkerset",
        decide=stamp_leaderworkerset,
        resource=LEADERWORKERSETS,
        operations=("CREATE", "UPDATE"),
        mutates=True,
    ),
    WebhookSpec(
        name="mpod.kueue.x-k8s.io",
        path="/kueue/pod",
        decide=gate_pod,
        resource=PODS,
        operations=("CREATE",),
        mutates=True,
    ),
)


@dataclass
class Kueue:
    """Admits groups up to a quota, the lowest index first; `evicted` groups are stopped and kept out."""

    world: World
    quota: int
    evicted: set[int] = field(default_factory=set)
    admitted: set[int] = field(default_factory=set)
    unpaid: list[str] = field(default_factory=list)
    overfull: list[str] = field(default_factory=list)

    async def install(self) -> None:
        """Name the webhooks to the API server, in a configuration that is asked before that of the product."""
        decisions = {spec.path: spec.decide for spec in WEBHOOKS}
        self.world.webhooks.serve(decisions, lambda path, body: review.answer(body, decisions[path]))
        at = configurations.at_url(f"https://{WEBHOOK_HOST}", b"")
        configuration = {
            "apiVersion": MUTATING_WEBHOOK_CONFIGURATIONS.api_version,
            "kind": MUTATING_WEBHOOK_CONFIGURATIONS.kind,
            "metadata": {"name": CONFIGURATION},
            "webhooks": [spec.build(at) for spec in WEBHOOKS],
        }
        await self.world.client.apply(MUTATING_WEBHOOK_CONFIGURATIONS, configuration, manager="kueue")

    async def run(self) -> None:
        """Reconcile again and again."""
        while True:
            await asyncio.sleep(BATCH)
            try:
                await self._reconcile()
            except (ConflictError, NotFoundError):
                continue

    async def _reconcile(self) -> None:
        found = {meta.name(one): one for one in await self.world.objects(LEADERWORKERSETS)}
        for name, lws in found.items():
            if meta.labels(lws).get(QUEUE):
                self._admit(_groups(lws))
                await self._follow(name, lws)

    def _admit(self, count: int) -> None:
        """Keep what is admitted, as long as its group is wanted and not evicted; fill up to the quota (R-KQ-20, 60)."""
        self.admitted = {index for index in self.admitted if index < count and index not in self.evicted}
        for index in range(count):
            if len(self.admitted) < self.quota and index not in self.evicted:
                self.admitted.add(index)

    async def _follow(self, name: str, lws: JSONObject) -> None:
        sets = {meta.name(one): one for one in await self.world.objects(STATEFULSETS)}
        pods = [pod for pod in await self.world.objects(PODS) if meta.labels(pod).get(labels.NAME) == name]
        self._count(pods, int(meta.spec(lws)["leaderWorkerTemplate"]["size"]))
        for pod in pods:
            if meta.labels(pod).get(labels.GROUP_INDEX) is None or meta.is_deleting(pod):
                continue
            await self._tag(pod, lws)
            index = int(meta.labels(pod)[labels.GROUP_INDEX])
            if index in self.evicted and not _is_gated(pod):
                await self.world.delete(PODS, meta.name(pod))
            elif _is_gated(pod) and index in self.admitted:
                await self._start(pod)
            elif _is_gated(pod) and self._is_of_older_revision(pod, sets):
                self.unpaid.append(meta.name(pod))
                await self._start(pod)

    def _count(self, pods: list[JSONObject], size: int) -> None:
        """Note a group with more live pods than it has members: the real one would finish it for good (R-KQ-44)."""
        live: dict[str, int] = {}
        for pod in pods:
            if meta.is_deleting(pod) and not meta.spec(pod).get("nodeName"):
                continue
            group = meta.labels(pod).get(labels.GROUP_INDEX, "")
            live[group] = live.get(group, 0) + 1
        self.overfull += [group for group, count in live.items() if count > size]

    def _is_of_older_revision(self, pod: JSONObject, sets: Mapping[str, JSONObject]) -> bool:
        """R-KQ-47."""
        owner = meta.controller_of(pod) or {}
        status = meta.status(sets.get(owner.get("name", ""), {}))
        current, update = status.get("currentRevision"), status.get("updateRevision")
        return current != update and meta.labels(pod).get(labels.STATEFULSET_REVISION) == current

    async def _tag(self, pod: JSONObject, lws: JSONObject) -> None:
        """R-KQ-31."""
        if MANAGED in meta.labels(pod):
            return
        role = "main"
        if meta.spec(lws)["leaderWorkerTemplate"].get("leaderTemplate"):
            role = "worker" if labels.LEADER_NAME in meta.annotations(pod) else "leader"
        size = meta.spec(lws)["leaderWorkerTemplate"]["size"]
        own = {"labels": {MANAGED: "true"}, "annotations": {TOTAL: str(size), ROLE: role}}
        await self._patch(pod, {"metadata": own})

    async def _start(self, pod: JSONObject) -> None:
        """Remove the gates of this integration, and no others (R-KQ-32)."""
        left = [gate for gate in meta.spec(pod)["schedulingGates"] if gate["name"] not in GATES]
        await self._patch(pod, {"spec": {"schedulingGates": left or None}})

    async def _patch(self, pod: JSONObject, patch: dict[str, Any]) -> None:
        key = ObjectKey(NAMESPACE, meta.name(pod))
        own = patch.get("metadata") or {}
        await self.world.client.patch(PODS, key, patch | {"metadata": own | {"uid": meta.uid(pod)}}, kind="merge")


def _groups(lws: JSONObject) -> int:
    """Return how many groups may be admitted: surge groups count while an update runs, by number only (R-KQ-21)."""
    spec, status = meta.spec(lws), meta.status(lws)
    replicas = int(spec["replicas"])
    surge = spec["rolloutStrategy"]["rollingUpdateConfiguration"]["maxSurge"]
    is_surging = isinstance(surge, int) and surge > 0 and (status.get("updatedReplicas") or 0) < replicas
    return max(replicas, int(status.get("replicas") or 0)) if is_surging else replicas


def _is_gated(pod: JSONObject) -> bool:
    return any(gate["name"] in GATES for gate in meta.spec(pod).get("schedulingGates") or [])
