"""Tests the order of pods, and which unschedulable pods are retried after a change."""

from typing import Any

from tests.unit.localkube.controllers.objects import build_pod

from localkube.controllers.scheduler import queue
from localkube.controllers.scheduler.podinfo import PodInfo, read_pod
from localkube.controllers.scheduler.predicates import Cause
from localkube.controllers.scheduler.queue import SchedulingQueue


def pending_pod(name: str, **spec: Any) -> PodInfo:
    """Build a pending pod."""
    return read_pod(build_pod(name, {"spec": spec}))


def drain(waiting: SchedulingQueue) -> list[str]:
    """Remove all pods from the queue. Return their names."""
    names = []
    while (found := waiting.pop()) is not None:
        names.append(found.key.name)
    return names


def test_pods_are_ordered_by_priority_then_age() -> None:
    waiting = SchedulingQueue()
    for one in (pending_pod("old"), pending_pod("urgent", priority=10), pending_pod("young")):
        waiting.put(one)
    waiting.put(pending_pod("old"))
    assert len(waiting) == 3
    assert drain(waiting) == ["urgent", "old", "young"]


def test_rejected_pod_is_retried_only_for_its_causes() -> None:
    waiting = SchedulingQueue()
    waiting.refuse(pending_pod("a"), frozenset({Cause.RESOURCES}))
    waiting.put(pending_pod("a"))
    waiting.retry(queue.POD_PLACED)
    assert drain(waiting) == []
    waiting.retry(queue.POD_GONE, lambda _: False)
    assert drain(waiting) == []
    waiting.retry(queue.POD_GONE)
    assert drain(waiting) == ["a"]


def test_rejected_pod_with_fewer_requirements_is_retried() -> None:
    waiting = SchedulingQueue()
    waiting.refuse(pending_pod("a", nodeSelector={"x": "y"}), frozenset({Cause.NODE}))
    waiting.put(pending_pod("a"))
    assert drain(waiting) == ["a"]


def test_removed_pod_is_forgotten() -> None:
    waiting = SchedulingQueue()
    waiting.put(pending_pod("a"))
    waiting.refuse(pending_pod("b"), frozenset(Cause))
    waiting.remove(pending_pod("a").uid)
    waiting.remove(pending_pod("b").uid)
    waiting.retry(queue.EVERYTHING)
    assert drain(waiting) == []
