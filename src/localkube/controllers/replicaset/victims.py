"""Which pods of a ReplicaSet are deleted first, where there are too many.

Mirrors `ActivePodsWithRanks` of kube-controller-manager. Ages are compared by their order of magnitude (powers of two of
nanoseconds); within one, the UID decides, so that not always the youngest goes.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cmp_to_key
from typing import Final

from kuberuntime.objects import decimals, meta, timestamps
from kuberuntime.objects.meta import JSONObject
from localkube.controllers import podhealth

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
COST_LIMIT: Final = 2**31
PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}


def ranked(pods: Iterable[JSONObject], related: Iterable[JSONObject], now: datetime) -> Sequence[JSONObject]:
    """Return the pods, the first victim first; `related` are the pods that should be on other nodes than these."""
    crowd = Counter(meta.spec(pod).get("nodeName") or "" for pod in related)

    def state(pod: JSONObject) -> tuple[int, ...]:
        node = meta.spec(pod).get("nodeName") or ""
        phase = PHASES.get(podhealth.phase(pod), 0)
        return (bool(node), phase, meta.is_condition_true(pod, "Ready"), _cost(pod), -crowd[node])

    def compare(one: JSONObject, other: JSONObject) -> int:
        if state(one) != state(other):
            return -1 if state(one) < state(other) else 1
        ready = _compare_ages(_ready_since(one), _ready_since(other), now)
        age = ready if ready is not None else (_restarts(other) - _restarts(one)) or None
        age = age if age is not None else _compare_ages(_created(one), _created(other), now)
        return -1 if (age or 0) < 0 or (not age and meta.uid(one) < meta.uid(other)) else 1

    return sorted(pods, key=cmp_to_key(compare))


def _cost(pod: JSONObject) -> int:
    cost = decimals.integer(meta.annotations(pod).get(DELETION_COST, ""))
    return cost if cost is not None and -COST_LIMIT <= cost < COST_LIMIT else 0


def _ready_since(pod: JSONObject) -> datetime | None:
    condition = meta.find_condition(pod, "Ready")
    since = (condition or {}).get("lastTransitionTime") if meta.is_condition_true(pod, "Ready") else None
    return timestamps.parse(since) if since else None


def _created(pod: JSONObject) -> datetime | None:
    created = meta.metadata(pod).get("creationTimestamp")
    return timestamps.parse(created) if created else None


def _compare_ages(one: datetime | None, other: datetime | None, now: datetime) -> int | None:
    """Return whether `one` is younger (negative), of the same order of magnitude (0), or the same moment (None)."""
    if one == other:
        return None
    if one is None or other is None:
        return -1 if one is None else 1
    return _magnitude(one, now) - _magnitude(other, now)


def _magnitude(moment: datetime, now: datetime) -> int:
    age = (now - moment).total_seconds() * 1e9
    return -1 if age <= 0 else int(math.log2(age))


def _restarts(pod: JSONObject) -> int:
    return max((entry.get("restartCount", 0) for entry in meta.status(pod).get("containerStatuses") or ()), default=0)
