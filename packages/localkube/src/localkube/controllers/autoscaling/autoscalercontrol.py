"""Computes the replicas of an autoscaler's target and its conditions, and plans the writes.

Mirrors `reconcileAutoscaler` of kube-controller-manager.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import HORIZONTAL_POD_AUTOSCALERS, Resource
from kuberuntime.plan import Action, Emit, Finally, Patch, Plan, Put, PutStatus
from localkube.controllers import eventobjects
from localkube.controllers.autoscaling import replicacalculator
from localkube.controllers.autoscaling import scalingbehavior as paces
from localkube.controllers.autoscaling.replicacalculator import Proposal, ReadingError
from localkube.controllers.autoscaling.scalingbehavior import History, ReplicaRecord, ScalingBehavior

PERIOD: Final = 15.0
"""The number of seconds between two decisions for an autoscaler."""

ABLE: Final = "AbleToScale"
ACTIVE: Final = "ScalingActive"
LIMITED: Final = "ScalingLimited"

RESCALE: Final = "Rescale"
"""The action in all events of autoscalers."""

Condition: TypeAlias = tuple[str, str, str, str]
"""The type, status, reason and message of a condition."""


class ObservedAutoscaler(Struct, frozen=True, kw_only=True):
    """An autoscaler, its target's scale, the selected pods, and their metrics or the reason for their absence."""

    autoscaler: JSONObject
    target: Resource
    scale: JSONObject
    pods: Sequence[JSONObject]
    metrics: Sequence[JSONObject] | str
    history: History
    now: datetime


class ScaleDecision(NamedTuple):
    """The desired replicas with their reason, the conditions, the current metrics, the history, and failures."""

    replicas: int
    reason: str
    conditions: tuple[Condition, ...]
    metrics: tuple[JSONObject, ...]
    history: History
    failures: tuple[tuple[str, str], ...] = ()


def desired_replicas(scale: JSONObject) -> int:
    """Return the desired replicas of a target."""
    return int(meta.spec(scale).get("replicas") or 0)


def decide(observed: ObservedAutoscaler) -> ScaleDecision:
    """Return the current decision for the autoscaler."""
    pace, current, now = paces.read_behavior(observed.autoscaler), desired_replicas(observed.scale), observed.now
    history = paces.prune(observed.history, pace, now)
    if not history.recommended:
        history = replace(history, recommended=(ReplicaRecord(now, current),))
    able = (ABLE, "True", "SucceededGetScale", "the HPA controller was able to get the target's current scale")
    if current == 0:
        text = "scaling is disabled since the replica count of the target is zero"
        return ScaleDecision(0, "", (able, (ACTIVE, "False", "ScalingDisabled", text)), (), history)
    if current > pace.max_replicas:
        return ScaleDecision(
            pace.max_replicas, "Current number of replicas above Spec.MaxReplicas", (able,), (), history
        )
    if current < pace.min_replicas:
        return ScaleDecision(
            pace.min_replicas, "Current number of replicas below Spec.MinReplicas", (able,), (), history
        )
    return _decide_by_metrics(observed, pace, history, able)


def _decide_by_metrics(
    observed: ObservedAutoscaler, pace: ScalingBehavior, history: History, able: Condition
) -> ScaleDecision:
    current, now = desired_replicas(observed.scale), observed.now
    proposals, errors = _proposals(observed, pace)
    statuses = tuple(proposal.status for proposal in proposals)
    largest = max(proposals, key=lambda proposal: proposal.replicas, default=Proposal(current, "", {}))
    events = tuple((error.reason, str(error)) for error in errors)
    if errors and (not proposals or largest.replicas < current):
        text = f"the HPA was unable to compute the replica count: {errors[0]}"
        total = len(meta.spec(observed.autoscaler)["metrics"])
        summary = f"invalid metrics ({len(errors)} invalid out of {total}), first error is: {errors[0]}"
        failures = (*events, ("FailedComputeMetricsReplicas", summary))
        failure = (able, (ACTIVE, "False", errors[0].reason, text))
        return ScaleDecision(current, "", failure, statuses, history, failures)
    stable = paces.stabilize(pace, largest.replicas, current, history, now)
    limit = paces.apply_limits(pace, stable.replicas, current, history, now)
    text = f"the HPA was able to successfully calculate a replica count from {largest.name}"
    conditions = (
        (ABLE, "True", stable.reason, stable.message),
        (ACTIVE, "True", "ValidMetricFound", text),
        (LIMITED, "False" if limit.replicas == stable.replicas else "True", limit.reason, limit.message),
    )
    reason = f"{largest.name} above target" if limit.replicas > current else "All metrics below target"
    history = replace(history, recommended=(*history.recommended, ReplicaRecord(now, largest.replicas)))
    return ScaleDecision(limit.replicas, reason, conditions, statuses, history, events)


def _proposals(observed: ObservedAutoscaler, pace: ScalingBehavior) -> tuple[list[Proposal], list[ReadingError]]:
    metrics = meta.spec(observed.autoscaler)["metrics"]
    if not meta.status(observed.scale).get("selector"):
        return [], [ReadingError("InvalidSelector", "the HPA target's scale is missing a selector")]
    if isinstance(observed.metrics, str):
        text = f"unable to fetch metrics from resource metrics API: {observed.metrics}"
        return [], [ReadingError("FailedGetResourceMetric", text)]
    load = replicacalculator.CurrentUsage(
        pods=observed.pods,
        metrics=observed.metrics,
        current=desired_replicas(observed.scale),
        tolerances=pace.tolerances,
        now=observed.now,
    )
    proposals, errors = [], []
    for metric in metrics:
        try:
            proposals.append(replicacalculator.propose_replicas(metric, load))
        except ReadingError as error:
            errors.append(error)
    return proposals, errors


def plan(observed: ObservedAutoscaler, decision: ScaleDecision) -> Plan:
    """Return the plan that writes a decision: first the scale if it changes, then the status."""
    autoscaler, current = observed.autoscaler, desired_replicas(observed.scale)
    conditions, status = decision.conditions, meta.status(autoscaler)
    counts: JSONObject = {"currentReplicas": current, "currentMetrics": [*decision.metrics] or None}
    counts["desiredReplicas"] = int(status.get("desiredReplicas") or 0) if decision.failures else decision.replicas
    warnings = tuple(
        eventobjects.warning_event(autoscaler, reason, RESCALE, text) for reason, text in decision.failures
    )
    actions: tuple[Action, ...] = (Emit(events=warnings),) if warnings else ()
    if decision.replicas == current:
        return Plan((*actions, *_write_status(autoscaler, counts, conditions, observed.now)), PERIOD)
    text = f"the HPA controller was able to update the target scale to {decision.replicas}"
    conditions = ((ABLE, "True", "SucceededRescale", text), *conditions[1:])
    counts |= {"desiredReplicas": decision.replicas, "lastScaleTime": timestamps.render(observed.now)}
    note = f"New size: {decision.replicas}; reason: {decision.reason}"
    failed = f"New size: {decision.replicas}; reason: {decision.reason}; error: {{error}}"
    put = Put(
        resource=observed.target,
        object=observed.scale | {"spec": {"replicas": decision.replicas}},
        subresource="scale",
        on_success=(eventobjects.normal_event(autoscaler, "SuccessfulRescale", RESCALE, note),),
        on_failure=(eventobjects.warning_event(autoscaler, "FailedRescale", RESCALE, failed),),
    )
    failure = (ABLE, "False", "FailedUpdateScale", "the HPA controller was unable to update the target scale: {error}")
    failed_status: JSONObject = {"conditions": _conditions(autoscaler, (failure,), observed.now)}
    report = Patch(
        resource=HORIZONTAL_POD_AUTOSCALERS,
        key=meta.key(autoscaler),
        patch={"status": failed_status},
        subresource="status",
    )
    status_actions = _write_status(autoscaler, counts, conditions, observed.now)
    return Plan((*actions, Finally(actions=(put, *status_actions), after=(), on_failure=(report,))), PERIOD)


def unreadable(autoscaler: JSONObject, why: str, now: datetime) -> Plan:
    """Return the plan for a target whose scale is unreadable."""
    text = f"the HPA controller was unable to get the target's current scale: {why}"
    event = eventobjects.warning_event(autoscaler, "FailedGetScale", RESCALE, why)
    status_actions = _write_status(autoscaler, {}, ((ABLE, "False", "FailedGetScale", text),), now)
    return Plan((Emit(events=(event,)), *status_actions), PERIOD)


def _write_status(
    autoscaler: JSONObject, counts: JSONObject, conditions: Sequence[Condition], now: datetime
) -> tuple[PutStatus, ...]:
    status = meta.status(autoscaler) | counts | {"conditions": _conditions(autoscaler, conditions, now)}
    if status == meta.status(autoscaler):
        return ()
    return (
        PutStatus(
            resource=HORIZONTAL_POD_AUTOSCALERS,
            object=autoscaler | {"status": status},
            resource_version=meta.resource_version(autoscaler),
            if_present=True,
        ),
    )


def _conditions(autoscaler: JSONObject, changes: Sequence[Condition], now: datetime) -> list[JSONObject]:
    """Return the status conditions with the changes. The time of a condition changes only with its status."""
    conditions = {condition["type"]: condition for condition in meta.status(autoscaler).get("conditions") or ()}
    for name, status, reason, message in changes:
        previous = conditions.get(name, {})
        since = previous["lastTransitionTime"] if previous.get("status") == status else timestamps.render(now)
        conditions[name] = {
            "type": name,
            "status": status,
            "lastTransitionTime": since,
            "reason": reason,
            "message": message,
        }
    return [*conditions.values()]
