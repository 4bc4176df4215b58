"""Computes the status of a PodDisruptionBudget from its pods and the scale of their controllers.

In: the budget, its pods, and the scale of their controllers. Out: the status, and when it may change without a write.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from kuberuntime.objects import intstr, meta, timestamps
from kuberuntime.objects.meta import JSONObject

DELETION_TIMEOUT: Final = timedelta(minutes=2)
"""The time for which a granted eviction counts if its pod is not being deleted."""

CONDITION: Final = "DisruptionAllowed"


class ObservedBudget(Struct, frozen=True, kw_only=True):
    """A budget and its pods.

    `scale` is the desired number of pods according to their controllers. `failure` is the reason if it is unknown.
    """

    budget: JSONObject
    pods: Sequence[JSONObject]
    scale: int
    failure: str
    now: datetime


def build(observed: ObservedBudget) -> JSONObject:
    """Build the whole status. If it cannot be computed, evictions are not permitted."""
    budget = observed.budget
    if observed.failure and not isinstance(meta.spec(budget).get("minAvailable"), int):  # only a number needs no scale
        kept = meta.status(budget) | {"disruptionsAllowed": 0, "observedGeneration": meta.generation(budget)}
        return kept | {"conditions": _conditions(observed, ("False", "SyncFailed", observed.failure))}
    disrupted = _pending_evictions(observed)
    healthy = sum(_is_healthy(pod, disrupted) for pod in observed.pods)
    expected, desired = _expected_and_healthy(observed)
    allowed = max(healthy - desired, 0) if expected > 0 else 0
    condition = ("True", "SufficientPods", "") if allowed > 0 else ("False", "InsufficientPods", "")
    status: JSONObject = {
        "observedGeneration": meta.generation(budget),
        "disruptedPods": disrupted,
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "conditions": _conditions(observed, condition),
    }
    return {name: value for name, value in status.items() if value != {}}


def next_check(status: JSONObject, now: datetime) -> float | None:
    """Return the seconds until the first granted eviction stops counting, or None if there is none."""
    moments = [timestamps.parse(text) for text in (status.get("disruptedPods") or {}).values()]
    return max((min(moments) + DELETION_TIMEOUT - now).total_seconds(), 0.0) + 1 if moments else None


def _expected_and_healthy(observed: ObservedBudget) -> tuple[int, int]:
    """Return the number of expected pods, and the number of pods that must be healthy."""
    spec = meta.spec(observed.budget)
    match spec.get("maxUnavailable"), spec.get("minAvailable"):
        case None, None:
            return 0, 0
        case None, int(number):
            return len(observed.pods), number
        case None, str(share):
            return observed.scale, intstr.scale(share, observed.scale, up=True)
        case unavailable, _:
            return observed.scale, max(observed.scale - intstr.scale(unavailable or 0, observed.scale, up=True), 0)


def _pending_evictions(observed: ObservedBudget) -> dict[str, str]:
    """Return the granted evictions whose pods are not yet deleted."""
    evictions: Mapping[str, str] = meta.status(observed.budget).get("disruptedPods") or {}
    names = [meta.name(pod) for pod in observed.pods if not meta.is_deleting(pod) and meta.name(pod) in evictions]
    return {
        name: evictions[name] for name in names if timestamps.parse(evictions[name]) + DELETION_TIMEOUT >= observed.now
    }


def _is_healthy(pod: JSONObject, disrupted: Mapping[str, str]) -> bool:
    return not meta.is_deleting(pod) and meta.name(pod) not in disrupted and meta.is_condition_true(pod, "Ready")


def _conditions(observed: ObservedBudget, state: tuple[str, str, str]) -> list[JSONObject]:
    status, reason, message = state
    condition = {
        "type": CONDITION,
        "status": status,
        "observedGeneration": meta.generation(observed.budget),
        "reason": reason,
        "message": message,
    }
    return meta.with_condition(observed.budget, condition, timestamps.render(observed.now))
