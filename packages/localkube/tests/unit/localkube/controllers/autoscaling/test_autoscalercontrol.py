"""Tests the decisions and writes of the autoscaler controller."""

from datetime import timedelta
from typing import Any

from msgspec.structs import replace
from tests.unit.localkube.controllers.autoscaling.test_replicacalculator import HALF, measured, metric, pod
from tests.unit.localkube.controllers.objects import NOW

from kuberuntime.objects import meta
from kuberuntime.objects.resources import REPLICA_SETS
from kuberuntime.plan import Emit, Finally, Plan, Put, PutStatus, flatten
from localkube.controllers.autoscaling import autoscalercontrol
from localkube.controllers.autoscaling.autoscalercontrol import ObservedAutoscaler
from localkube.controllers.autoscaling.scalingbehavior import History, ReplicaRecord


def observed(current: int, cpu: str, status: Any = None, metrics: Any = None, **change: Any) -> ObservedAutoscaler:
    spec = {"minReplicas": 1, "maxReplicas": 8, "metrics": metrics or [metric()]} | change.pop("spec", {})
    pods = [pod(f"p{index}") for index in range(current)]
    fields: dict[str, Any] = {
        "autoscaler": {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "web", "namespace": "default", "uid": "u", "resourceVersion": "1"},
            "spec": spec,
            "status": status or {},
        },
        "target": REPLICA_SETS,
        "scale": {"metadata": {"name": "web"}, "spec": {"replicas": current}, "status": {"selector": "app=web"}},
        "pods": pods,
        "metrics": [measured(meta.name(one), cpu) for one in pods],
        "history": History(),
        "now": NOW,
    }
    return ObservedAutoscaler(**(fields | change))


def plan(seen: ObservedAutoscaler) -> Plan:
    return autoscalercontrol.plan(seen, autoscalercontrol.decide(seen))


def status_of(written: Plan) -> Any:
    (found,) = [one.object["status"] for one in flatten(written.actions) if isinstance(one, PutStatus)]
    return found


def test_new_size_is_written_before_the_status() -> None:
    found = plan(observed(2, "1"))
    (both,) = found.actions
    assert isinstance(both, Finally)
    put, status = both.actions
    assert isinstance(put, Put)
    assert isinstance(status, PutStatus)
    assert (put.subresource, put.object["spec"]) == ("scale", {"replicas": 4})
    assert status.object["status"]["desiredReplicas"] == 4
    assert status.object["status"]["lastScaleTime"] == "2026-01-01T12:00:00Z"
    (refused,) = both.on_failure
    assert refused.patch["status"]["conditions"][0]["reason"] == "FailedUpdateScale"
    assert found.requeue_after == autoscalercontrol.PERIOD


def test_unchanged_status_is_not_written() -> None:
    first = plan(observed(2, "500m"))
    assert plan(observed(2, "500m", status_of(first), now=NOW + timedelta(seconds=15))) == Plan(
        (), autoscalercontrol.PERIOD
    )


def test_condition_time_changes_only_with_its_status() -> None:
    before = status_of(plan(observed(2, "500m")))
    after = status_of(
        plan(observed(2, "450m", before, history=History((ReplicaRecord(NOW, 9),)), now=NOW + timedelta(60)))
    )
    assert [one["lastTransitionTime"] for one in after["conditions"]] == ["2026-01-01T12:00:00Z"] * 3


def test_largest_of_several_proposals_is_used() -> None:
    memory = metric(HALF, "memory")
    found = autoscalercontrol.decide(observed(2, "1", metrics=[metric({"averageUtilization": 99}), metric()]))
    assert found.replicas == 4
    partly = observed(2, "1", metrics=[memory, metric()])
    assert autoscalercontrol.decide(partly).replicas == 4
    assert autoscalercontrol.decide(partly).failures[0][0] == "FailedGetResourceMetric"


def test_missing_metric_prevents_scaling_down() -> None:
    found = autoscalercontrol.decide(observed(4, "0", metrics=[metric(HALF, "memory"), metric()]))
    assert found.replicas == 4
    assert found.failures[-1][1].startswith(
        "invalid metrics (1 invalid out of 2), first error is: failed to get memory"
    )
    written = autoscalercontrol.plan(observed(4, "0", {"desiredReplicas": 7}), found)
    assert isinstance(written.actions[0], Emit)
    assert status_of(written)["desiredReplicas"] == 7


def test_target_without_selector_or_metrics_has_a_condition() -> None:
    scale = {"metadata": {"name": "web"}, "spec": {"replicas": 2}, "status": {}}
    conditions = autoscalercontrol.decide(observed(2, "1", scale=scale)).conditions
    assert conditions[1][1:3] == ("False", "InvalidSelector")
    away = autoscalercontrol.decide(replace(observed(2, "1"), metrics="no node is running"))
    assert "no node is running" in away.conditions[1][3]


def test_bounds_and_zero_replicas_need_no_metrics() -> None:
    assert autoscalercontrol.decide(observed(9, "1")).replicas == 8
    assert autoscalercontrol.decide(observed(1, "1", spec={"minReplicas": 3})).replicas == 3
    off = autoscalercontrol.decide(observed(0, "1"))
    assert (off.replicas, off.conditions[1][2]) == (0, "ScalingDisabled")
    assert off.history.recommended == (ReplicaRecord(NOW, 0),)


def test_unreadable_scale_causes_an_event_and_a_condition() -> None:
    found = autoscalercontrol.unreadable(observed(1, "1").autoscaler, "not there", NOW)
    assert status_of(found)["conditions"][0]["reason"] == "FailedGetScale"
    assert isinstance(found.actions[0], Emit)
    assert found.actions[0].events[0].note == "not there"
