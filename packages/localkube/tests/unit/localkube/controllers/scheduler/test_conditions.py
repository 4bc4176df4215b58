"""Tests the `PodScheduled` condition of an unscheduled pod."""

from testkit.objects import merge
from tests.unit.localkube.controllers.objects import NOW, build_pod

from kuberuntime.objects.meta import JSONObject
from localkube.controllers.scheduler import conditions

READY = {"type": "Ready", "status": "False"}


def scheduled(status: str, message: str, since: str) -> JSONObject:
    """Build the `PodScheduled` condition."""
    return {
        "type": "PodScheduled",
        "status": status,
        "lastProbeTime": None,
        "lastTransitionTime": since,
        "reason": "Unschedulable",
        "message": message,
    }


def test_scheduled_condition_is_added_to_the_others() -> None:
    pod = build_pod("a", {"status": {"conditions": [READY]}})
    assert conditions.unschedulable_conditions(pod, "no room", NOW) == [
        READY,
        scheduled("False", "no room", "2026-01-01T12:00:00Z"),
    ]


def test_condition_time_is_kept_and_equal_message_not_written() -> None:
    before = scheduled("False", "no room", "2026-01-01T11:00:00Z")
    pod = build_pod("a", {"status": {"conditions": [before]}})
    assert conditions.unschedulable_conditions(pod, "no GPU", NOW) == [before | {"message": "no GPU"}]
    assert conditions.unschedulable_conditions(pod, "no room", NOW) is None


def test_events_name_pod_and_node() -> None:
    pod = merge(build_pod("a"), {"metadata": {"namespace": "default"}})
    assert conditions.scheduled_event(pod, "node-1").note == "Successfully assigned default/a to node-1"
    assert conditions.failed_event(pod, "0/1 nodes are available: 1 Too many pods.").reason == "FailedScheduling"
