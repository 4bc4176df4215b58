"""Tests when a status is written. Only changes to counts are delayed (R-STAT-3)."""

import pytest
from msgspec.structs import replace
from tests import builders

from kuberuntime.objects.meta import JSONObject, ObjectKey, ResourceVersion
from kuberuntime.objects.resources import PODS
from kuberuntime.plan import Delete, Event, Finally, Plan, PutStatus
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.controllers.leaderworkerset import (
    MAX_LOSS_DELAY,
    MAX_STATUS_DELAY,
    STARTUP_STATUS_INTERVAL,
    STATUS_DELAY,
    Memory,
)

NONE_READY: JSONObject = {"replicas": 1}
DELETION = Delete(resource=PODS, key=ObjectKey("default", "web-1"))
CHANGED: Event = Event("Normal", "GroupsProgressing", "Update", "Replicas are progressing", {})


def report(ready: int) -> PutStatus:
    obj: JSONObject = builders.leaderworkerset_object() | {"status": {"readyReplicas": ready}}
    return PutStatus(resource=LEADERWORKERSETS, object=obj, resource_version=ResourceVersion("1"))


def test_count_updates_wait_and_deletions_do_not() -> None:
    memory = Memory(written_at=10.0)
    plan = Plan((Finally(actions=(report(1),), after=(DELETION,)),))

    waiting = memory.delay_status(plan, NONE_READY, 10.1)
    assert waiting.actions == (DELETION,)
    assert waiting.requeue_after == pytest.approx(STATUS_DELAY)
    later = memory.delay_status(replace(plan, requeue_after=0.05), NONE_READY, 10.2)
    assert (later.actions, later.requeue_after) == ((DELETION,), 0.05)
    assert memory.delay_status(plan, NONE_READY, 10.1 + STATUS_DELAY) == plan


def test_count_updates_are_written_although_they_continue() -> None:
    memory = Memory(written_at=10.0)
    for tenth in range(1, 10):
        assert not memory.delay_status(Plan((report(tenth),)), NONE_READY, 10 + tenth / 10).actions

    assert memory.delay_status(Plan((report(10),)), NONE_READY, 10 + MAX_STATUS_DELAY).actions


def test_changed_condition_is_written_immediately() -> None:
    plan = Plan((replace(report(1), on_success=(CHANGED,)),))

    assert Memory(written_at=10.0).delay_status(plan, NONE_READY, 10.0) is plan


def test_counts_wait_longer_until_available() -> None:
    memory, plan = Memory(written_at=10.0), Plan((report(1),))
    one_ready: JSONObject = {"readyReplicas": 1}

    waiting = memory.delay_status(plan, one_ready, 10.1)
    assert not waiting.actions
    assert waiting.requeue_after == pytest.approx(STARTUP_STATUS_INTERVAL - 0.1)
    assert memory.delay_status(plan, one_ready, 10 + STARTUP_STATUS_INTERVAL) == plan
    available = {"readyReplicas": 1, "conditions": [{"type": "Available", "status": "True"}]}
    write = replace(report(1), object=builders.leaderworkerset_object() | {"status": available})
    assert Memory(written_at=10.0).delay_status(Plan((write,)), one_ready, 10.1).requeue_after == pytest.approx(
        STATUS_DELAY
    )


def test_status_waits_until_a_lost_worker_is_acted_upon() -> None:
    """The next manager compares the groups with the status before the loss (ADR 14)."""
    plan = Plan((replace(report(1), on_success=(CHANGED,)), DELETION))

    waiting = Memory().delay_status(plan, NONE_READY, 10.0, last_loss=9.9)
    assert waiting.actions == (DELETION,)
    assert waiting.requeue_after == pytest.approx(MAX_LOSS_DELAY - 0.1)
    assert Memory().delay_status(plan, NONE_READY, 10.0, last_loss=10.0 - MAX_LOSS_DELAY) is plan
