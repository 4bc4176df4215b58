"""Evicts pods from nodes with NoExecute taints that they do not tolerate, or no longer tolerate.

Mirrors `taint_eviction.go` of kube-controller-manager. The toleration time of a pod starts when this controller first
observed the pod with the taint. An evicted pod gets the condition `DisruptionTarget` first.
"""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Final

from msgspec import Struct, field

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.clock import Clock
from kuberuntime.controller.controller import Watch
from kuberuntime.objects import disruptiontarget, duration, meta
from kuberuntime.objects.meta import UID, JSONObject, ObjectKey
from kuberuntime.objects.placement import read_tolerations
from kuberuntime.objects.resources import PODS
from kuberuntime.plan import Delete, Event, Plan
from localkube.controllers import eventobjects
from localkube.controllers.nodes.podgc import BY_NODE, status_patch

AT_ONCE: Final = timedelta()


class TaintEvictionController(Struct, frozen=True, kw_only=True):
    """Evicts pods. `pods` has the index of `podgc.py`.

    `_since` is the monotonic time when a pod started to tolerate the taints of its node, so that setting the wall clock
    does not evict pods.
    """

    pods: Informer
    nodes: Informer
    clock: Clock
    _since: dict[ObjectKey, tuple[UID, float]] = field(default_factory=dict)

    def watches(self) -> tuple[Watch, ...]:
        """Return the watches, with the pods that a change affects."""
        return Watch(self.nodes, self._pods_of), Watch(self.pods, self._affected_pod)

    async def plan(self, key: ObjectKey) -> Plan:
        """Evict a pod, or requeue it until its toleration expires."""
        pod = self.pods.store.get(key)
        stay = None if pod is None or meta.is_deleting(pod) else toleration_time(pod, self._node_taints(pod))
        if pod is None or stay is None:
            self._since.pop(key, None)
            return Plan()
        now = self.clock.monotonic()
        uid, since = self._since.get(key, ("", now))
        since = since if uid == meta.uid(pod) else now
        self._since[key] = (meta.uid(pod), since)
        remaining = since + stay.total_seconds() - now
        if remaining > 0:
            return Plan(requeue_after=remaining)
        deletion = Delete(
            resource=PODS, key=key, propagation="Background", uid=meta.uid(pod), on_success=(eviction_event(pod),)
        )
        condition = disruptiontarget.condition(
            "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint", self.clock.now()
        )
        return Plan((status_patch(pod, {"conditions": [condition]}), deletion))

    def _node_taints(self, pod: JSONObject) -> list[JSONObject]:
        node = self.nodes.store.get(ObjectKey("", meta.spec(pod).get("nodeName") or ""))
        return [taint for taint in meta.spec(node or {}).get("taints") or [] if taint["effect"] == "NoExecute"]

    def _affected_pod(self, change: Change) -> list[ObjectKey]:
        """Return the pod if its node has or had NoExecute taints, which is rare."""
        key = meta.key(change.object)
        return [key] if key in self._since or self._node_taints(change.object) else []

    def _pods_of(self, change: Change) -> Iterator[ObjectKey]:
        taints = [meta.spec(node or {}).get("taints") or [] for node in (change.old, change.new)]
        if change.old is None or taints[0] != taints[1]:
            for pod in self.pods.store.by_index(BY_NODE, meta.name(change.object)):
                yield meta.key(pod)


def toleration_time(pod: JSONObject, taints: Iterable[JSONObject]) -> timedelta | None:
    """Return the time that the pod can remain on a node with these taints, or None if it is unlimited."""
    tolerations = read_tolerations(meta.spec(pod))
    limits: list[float] = []
    for taint in taints:
        matching = [toleration for toleration in tolerations if toleration.tolerates(taint)]
        if not matching:
            return AT_ONCE
        limits += [toleration.seconds for toleration in matching if toleration.seconds is not None]
    return duration.from_seconds(max(min(limits), 0)) if limits else None


def eviction_event(pod: JSONObject) -> Event:
    """Build the event for an eviction, as in kube-controller-manager."""
    return eventobjects.normal_event(
        pod, "TaintManagerEviction", "Deleting", f"Marking for deletion Pod {meta.key(pod)}"
    )
