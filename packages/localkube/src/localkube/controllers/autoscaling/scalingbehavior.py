"""Implements the scaling limits of an autoscaler: stabilization windows and policies, which use its history.

In: the replicas for the metrics. Out: the replicas that the behavior allows, and the reason for a difference.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from msgspec import Struct

from kuberuntime.objects import meta, quantity
from kuberuntime.objects.meta import JSONObject

TOLERANCE: Final = 0.1
"""The default tolerance. Smaller deviations from the target have no effect."""

DOWN_WINDOW: Final = 300
"""The default stabilization window of `scaleDown` in seconds."""

DOUBLE: Final[JSONObject] = {"type": "Percent", "value": 100, "periodSeconds": 15}
FOUR: Final[JSONObject] = {"type": "Pods", "value": 4, "periodSeconds": 15}
UP: Final[JSONObject] = {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [FOUR, DOUBLE]}
DOWN: Final[JSONObject] = {"stabilizationWindowSeconds": DOWN_WINDOW, "selectPolicy": "Max", "policies": [DOUBLE]}
"""The default rules of a behavior."""


class ReplicaRecord(NamedTuple):
    """A number of replicas at a time, either recommended or added (negative if removed)."""

    at: datetime
    replicas: int


class History(Struct, frozen=True):
    """Recommendations and changes, oldest first."""

    recommended: tuple[ReplicaRecord, ...] = ()
    changed: tuple[ReplicaRecord, ...] = ()


class ScalingDecision(NamedTuple):
    """The replicas, and the condition (reason, message) that explains the limit, if there is one."""

    replicas: int
    reason: str
    message: str


class ScalingBehavior(Struct, frozen=True):
    """The behavior of an autoscaler: rules for both directions, and the minimum and maximum."""

    up: JSONObject
    down: JSONObject
    min_replicas: int
    max_replicas: int

    @property
    def tolerances(self) -> tuple[float, float]:
        """Return the tolerated deviations below and above the target, as fractions."""
        return _tolerance(self.down), _tolerance(self.up)


def read_behavior(autoscaler: JSONObject) -> ScalingBehavior:
    """Return the behavior of an autoscaler, with the defaults of the controller."""
    spec = meta.spec(autoscaler)
    behavior = spec.get("behavior") or {}
    up, down = UP | (behavior.get("scaleUp") or {}), DOWN | (behavior.get("scaleDown") or {})
    return ScalingBehavior(up, down, int(spec["minReplicas"]), int(spec["maxReplicas"]))


def stabilize(pace: ScalingBehavior, desired: int, current: int, history: History, now: datetime) -> ScalingDecision:
    """Return the desired replicas, limited by the recommendations in the stabilization window."""
    lowest = min([desired, *_changes_in_periods(history.recommended, pace.up, now)])
    highest = max([desired, *_changes_in_periods(history.recommended, pace.down, now)])
    replicas = min(max(current, lowest), highest)
    if replicas == desired:
        return ScalingDecision(replicas, "ReadyForNewScale", "recommended size matches current size")
    if desired >= current:
        text = "recent recommendations were lower than current one, applying the lowest recent recommendation"
        return ScalingDecision(replicas, "ScaleUpStabilized", text)
    text = "recent recommendations were higher than current one, applying the highest recent recommendation"
    return ScalingDecision(replicas, "ScaleDownStabilized", text)


def apply_limits(pace: ScalingBehavior, desired: int, current: int, history: History, now: datetime) -> ScalingDecision:
    """Return the desired replicas, or the nearest number that limits and policies permit."""
    if desired > current:
        limit = max(_policy_limit(pace.up, current, history, now, up=True), current)
        most = min(pace.max_replicas, limit)
        if desired > most:
            return ScalingDecision(most, *(_TOO_MANY if pace.max_replicas <= limit else _TOO_FAST_UP))
    if desired < current:
        limit = min(_policy_limit(pace.down, current, history, now, up=False), current)
        least = max(pace.min_replicas, limit)
        if desired < least:
            return ScalingDecision(least, *(_TOO_FEW if pace.min_replicas >= limit else _TOO_FAST_DOWN))
    return ScalingDecision(desired, "DesiredWithinRange", "the desired count is within the acceptable range")


_TOO_MANY: Final = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
_TOO_FEW: Final = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
_TOO_FAST_UP: Final = ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
_TOO_FAST_DOWN: Final = ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate")


def prune(history: History, pace: ScalingBehavior, now: datetime) -> History:
    """Return the history without entries that rules no longer require."""
    windows = max(int(rules["stabilizationWindowSeconds"]) for rules in (pace.up, pace.down))
    periods = [policy["periodSeconds"] for rules in (pace.up, pace.down) for policy in rules["policies"]]
    return History(
        _recent_records(history.recommended, windows, now),
        _recent_records(history.changed, max(periods, default=0), now),
    )


def _recent_records(moments: Iterable[ReplicaRecord], seconds: float, now: datetime) -> tuple[ReplicaRecord, ...]:
    begin = now - timedelta(seconds=seconds)
    return tuple(moment for moment in moments if begin < moment.at <= now)


def _changes_in_periods(moments: Iterable[ReplicaRecord], rules: JSONObject, now: datetime) -> list[int]:
    return [moment.replicas for moment in _recent_records(moments, int(rules["stabilizationWindowSeconds"]), now)]


def _policy_limit(rules: JSONObject, current: int, history: History, now: datetime, *, up: bool) -> int:
    """Return the number of replicas that the policies for one direction permit."""
    policies: Sequence[JSONObject] = rules["policies"]
    if rules["selectPolicy"] == "Disabled":
        return current
    farthest = (rules["selectPolicy"] == "Max") == up
    choose: Callable[[Iterable[int]], int] = max if farthest else min
    return choose(_allowed_replicas(policy, current, history, now, up=up) for policy in policies)


def _allowed_replicas(policy: JSONObject, current: int, history: History, now: datetime, *, up: bool) -> int:
    """Return the number of replicas that a policy permits, based on the number at the start of its period."""
    begin = current - sum(moment.replicas for moment in _recent_records(history.changed, policy["periodSeconds"], now))
    value = int(policy["value"])
    if policy["type"] == "Pods":
        return begin + value if up else begin - value
    return -(-begin * (100 + value) // 100) if up else begin * (100 - value) // 100


def _tolerance(rules: JSONObject) -> float:
    own = rules.get("tolerance")
    return TOLERANCE if own is None else float(quantity.parse(own).fraction())
