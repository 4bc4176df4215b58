"""Which pod is next, and which refused pods a change may help.

Pods leave by priority, then by age in the queue. A refused pod waits, with the causes of its refusal, until something
happens that one of them depends on; nothing is polled.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from kuberuntime.objects.meta import UID
from localkube.controllers.scheduler.pod import PodInfo
from localkube.controllers.scheduler.predicates import Cause

EVERYTHING: Final = frozenset(Cause)
POD_GONE: Final = frozenset({Cause.RESOURCES, Cause.ANTI_AFFINITY, Cause.SPREAD})
POD_PLACED: Final = frozenset({Cause.AFFINITY, Cause.SPREAD})
POD_RELABELED: Final = frozenset({Cause.AFFINITY, Cause.ANTI_AFFINITY, Cause.SPREAD})
VOLUMES_CHANGED: Final = frozenset({Cause.VOLUMES})


@dataclass(slots=True)
class SchedulingQueue:
    """Pods that want a node: those to try now, and those that were refused."""

    _heap: list[tuple[int, int, UID]] = field(default_factory=list)
    _active: dict[UID, PodInfo] = field(default_factory=dict)
    _refused: dict[UID, tuple[PodInfo, frozenset[Cause]]] = field(default_factory=dict)
    _order: "count[int]" = field(default_factory=count)

    def __len__(self) -> int:
        """Return how many pods are to be tried now."""
        return len(self._active)

    def put(self, pod: PodInfo) -> None:
        """Try a pod, or try it again with what it asks for now; one that is refused and unchanged keeps waiting."""
        if pod.uid in self._refused and self._refused[pod.uid][0] == pod:
            return
        self._refused.pop(pod.uid, None)
        self._push(pod)

    def pop(self) -> PodInfo | None:
        """Return the next pod to try."""
        while self._heap:
            _, _, uid = heapq.heappop(self._heap)
            pod = self._active.pop(uid, None)
            if pod is not None:
                return pod
        return None

    def refuse(self, pod: PodInfo, causes: frozenset[Cause]) -> None:
        """Keep a pod until one of the causes may be gone."""
        self._refused[pod.uid] = (pod, causes)

    def remove(self, uid: UID) -> None:
        """Forget a pod."""
        self._active.pop(uid, None)
        self._refused.pop(uid, None)

    def retry(self, changed: frozenset[Cause], concerns: Callable[[PodInfo], bool] = lambda _: True) -> None:
        """Try again what was refused for something that may have changed, and that `concerns` the pod."""
        for pod, causes in tuple(self._refused.values()):
            if causes & changed and concerns(pod):
                del self._refused[pod.uid]
                self._push(pod)

    def _push(self, pod: PodInfo) -> None:
        if pod.uid not in self._active:
            heapq.heappush(self._heap, (-pod.priority, next(self._order), pod.uid))
        self._active[pod.uid] = pod
