"""Implements the scheduling queue, which selects the next pod and retries unschedulable pods.

Pods are sorted by priority, then by time in the queue. An unschedulable pod waits, with its causes, until a change may
remove a cause, without polling.
"""

import heapq
from collections.abc import Callable
from itertools import count
from typing import Final

from msgspec import Struct, field

from kuberuntime.objects.meta import UID
from localkube.controllers.scheduler.podinfo import PodInfo
from localkube.controllers.scheduler.predicates import Cause

EVERYTHING: Final = frozenset(Cause)
POD_GONE: Final = frozenset({Cause.RESOURCES, Cause.ANTI_AFFINITY, Cause.SPREAD})
POD_PLACED: Final = frozenset({Cause.AFFINITY, Cause.SPREAD})
POD_RELABELED: Final = frozenset({Cause.AFFINITY, Cause.ANTI_AFFINITY, Cause.SPREAD})
VOLUMES_CHANGED: Final = frozenset({Cause.VOLUMES})


class SchedulingQueue(Struct):
    """Pods without a node: pods to schedule now, and unschedulable pods."""

    _heap: list[tuple[int, int, UID]] = field(default_factory=list)
    _active: dict[UID, PodInfo] = field(default_factory=dict)
    _unschedulable: dict[UID, tuple[PodInfo, frozenset[Cause]]] = field(default_factory=dict)
    _order: "count[int]" = field(default_factory=count)

    def __len__(self) -> int:
        return len(self._active)

    def put(self, pod: PodInfo) -> None:
        """Add or update a pod. An unchanged unschedulable pod continues to wait."""
        if pod.uid in self._unschedulable and self._unschedulable[pod.uid][0] == pod:
            return
        self._unschedulable.pop(pod.uid, None)
        self._push(pod)

    def pop(self) -> PodInfo | None:
        """Return the next pod to schedule."""
        while self._heap:
            _, _, uid = heapq.heappop(self._heap)
            pod = self._active.pop(uid, None)
            if pod is not None:
                return pod
        return None

    def refuse(self, pod: PodInfo, causes: frozenset[Cause]) -> None:
        """Store an unschedulable pod until a change can remove one of its causes."""
        self._unschedulable[pod.uid] = (pod, causes)

    def remove(self, uid: UID) -> None:
        """Remove a pod."""
        self._active.pop(uid, None)
        self._unschedulable.pop(uid, None)

    def retry(self, changed: frozenset[Cause], concerns: Callable[[PodInfo], bool] = lambda _: True) -> None:
        """Retry unschedulable pods whose causes might have changed, if the change `concerns` them."""
        for pod, causes in tuple(self._unschedulable.values()):
            if causes & changed and concerns(pod):
                del self._unschedulable[pod.uid]
                self._push(pod)

    def _push(self, pod: PodInfo) -> None:
        if pod.uid not in self._active:
            heapq.heappush(self._heap, (-pod.priority, next(self._order), pod.uid))
        self._active[pod.uid] = pod
