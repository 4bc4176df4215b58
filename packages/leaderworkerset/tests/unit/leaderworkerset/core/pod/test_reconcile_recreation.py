"""Tests the decisions for groups that fail repeatedly, are delayed, or have lost pods."""

from typing import Any

from tests import builders
from tests.unit.leaderworkerset.core.pod.test_reconcile import (
    EARLIER,
    FAILED,
    LEADER,
    LWS,
    apply,
    create_workers,
    delete_leader,
    group,
    new_group,
    record,
)

from kuberuntime.plan import Create, Delete, Event, Plan
from leaderworkerset.api import labels
from leaderworkerset.api.recreationrecord import RecreationState
from leaderworkerset.capabilities import names
from leaderworkerset.capabilities.deciding import reconcile_group as reconcile
from leaderworkerset.capabilities.lostnodes.forcedeletion import required_nodes
from leaderworkerset.core import decisionevents
from leaderworkerset.core.policies.policy import LiveGroup
from leaderworkerset.core.policies.recreation import RestartSettings


def test_group_that_fails_again_waits() -> None:
    """The record is written first, so that it is never lost."""
    again = reconcile(group(FAILED, record=record(1, -60, leader=EARLIER)))

    note = "Pod web-0-1 failed again. Group 0 is recreated in 10 s (failure 2 in a row)"
    told = Event("Warning", "BackOff", "Delete", note, decisionevents.reference(LWS), decisionevents.reference(LEADER))
    assert again == Plan((apply(record(2, 10, RecreationState.WAITING), told),), requeue_after=10.0)


def test_delayed_group_is_deleted_when_due() -> None:
    """The failed pod may have been replaced, and another manager may now be the leader."""
    whole = builders.worker_pod(LEADER)

    waiting = record(2, 10, RecreationState.WAITING)
    assert reconcile(group(whole, record=waiting)) == Plan(requeue_after=10.0)
    assert reconcile(group(whole, statefulsets=(), record=waiting)) == Plan(requeue_after=10.0)
    assert reconcile(group(whole, record=record(2, 0, RecreationState.WAITING))) == Plan(
        (apply(record(2, 0)), delete_leader("web-0-1"))
    )


def test_recorded_future_time_does_not_delay_a_group() -> None:
    whole = builders.worker_pod(LEADER)
    ahead = record(2, 400 * 86400, RecreationState.WAITING)

    delete = Plan((apply(record(2, 400 * 86400)), delete_leader("web-0-1")))
    assert reconcile(group(whole, record=ahead)) == delete


def test_record_of_an_earlier_set_is_ignored() -> None:
    """The old record retains its name until the garbage collector deletes it."""
    known = record(1, -60, leader=EARLIER)
    (owner,) = known["metadata"]["ownerReferences"]
    known["metadata"]["ownerReferences"] = [owner | {"uid": "uid-of-predecessor"}]

    assert reconcile(group(FAILED, record=known)) == Plan((delete_leader("web-0-1"), apply(record(1, 0))))


def test_recorded_recreation_is_completed() -> None:
    """The record precedes the deletion, so that another manager can complete the recreation in one write."""
    assert reconcile(group(record=record(2, -5))) == Plan((delete_leader("web-0-1"),))


def annotated(**found: str) -> dict[str, Any]:
    names = {labels.PREFIX + name.replace("_", "-"): text for name, text in found.items()}
    return builders.leaderworkerset_object(metadata={"annotations": names})


def test_failures_recreate_immediately_without_backoff() -> None:
    """The Go controller has the same behavior (R-POD-5)."""
    off = annotated(restart_backoff="off")
    earlier = record(7, -1, leader=EARLIER)

    assert reconcile(group(FAILED, lws=off, record=earlier)) == Plan((delete_leader("web-0-1"),))
    assert reconcile(group(FAILED, facts={names.BACKOFF: RestartSettings(has_backoff=False)})) == Plan(
        (delete_leader("web-0-1"),)
    )


def test_disabled_backoff_recreates_a_waiting_group() -> None:
    plan = reconcile(group(lws=annotated(restart_backoff="off"), record=record(2, 10, RecreationState.WAITING)))

    assert plan == Plan((apply(record(2, 10)), delete_leader("web-0-1")))


def test_new_resume_value_restarts_the_count() -> None:
    """A delayed group is recreated immediately."""
    resumed = annotated(resume_group_restarts="again")
    plan = reconcile(group(FAILED, lws=resumed, record=record(4, 60, RecreationState.WAITING)))

    anew = record(1, 0)
    anew["metadata"]["annotations"][labels.RESUMED] = "again"
    assert plan == Plan((apply(anew), delete_leader("web-0-1")))
    done = group(FAILED, lws=resumed, record=anew)
    assert reconcile(done) == Plan((delete_leader("web-0-1"),))


def stuck_worker() -> dict[str, Any]:
    return builders.worker_pod(LEADER, deleting=True, node="n1")


def test_lost_worker_is_released_while_its_leader_waits() -> None:
    """The whole group is recreated, because its leader is already being deleted."""
    lws = annotated(release_lost_pods_after="1s")
    leader = builders.leader_pod(lws, deleting=True)
    observed = group(stuck_worker(), lws=lws, leader=leader, nodes={"n1": None})

    assert required_nodes(observed) == {"n1"}
    plan = reconcile(observed)

    assert [(type(action), action.grace_period) for action in plan.actions if isinstance(action, Delete)] == [
        (Delete, 0)
    ]
    assert plan.requeue_after == 30.0


def test_release_and_recreation_are_one_plan() -> None:
    lws = annotated(release_lost_pods_after="10s")
    plan = reconcile(group(stuck_worker(), lws=lws))

    assert plan.actions[0] == delete_leader("web-0-1")
    assert plan.requeue_after == 9.0


def test_lost_pods_are_not_released_by_default() -> None:
    """The Go controller has the same behavior."""
    observed = group(stuck_worker(), leader=builders.leader_pod(LWS, deleting=True))

    assert required_nodes(observed) == set()
    assert required_nodes(LiveGroup(now=builders.NOW, leader=LEADER)) == set()
    assert reconcile(observed) == Plan()


def test_successor_of_a_deleted_leader_ignores_the_record() -> None:
    """A record applies to a single leader UID."""
    observed = new_group(record=record(3, 10, leader=EARLIER))

    assert reconcile(observed) == Plan((create_workers(LWS, LEADER),))


def test_restart_policy_none_cancels_a_delayed_recreation() -> None:
    """The current spec is used (R-POD-3)."""
    never = builders.leaderworkerset_object(template={"restartPolicy": "None"})

    assert reconcile(group(FAILED, lws=never, record=record(2, 0))) == Plan()


def test_deleted_worker_deletes_its_leader() -> None:
    """The deletion of a worker deletes its leader (R-POD-11)."""
    gone = builders.worker_pod(LEADER, deleting=True)

    assert reconcile(group(gone=(gone,))).actions[0] == delete_leader("web-0-1")


def test_ignored_failure_does_not_prevent_worker_creation() -> None:
    """The workers of a group that has not started are still created (R-POD-5.2)."""
    lws = builders.leaderworkerset_object(template={"restartPolicy": "RecreateGroupAfterStart"})
    leader = builders.leader_pod(lws, init_restarts=1, phase="Pending")

    assert reconcile(new_group(lws, leader=leader)) == Plan((create_workers(lws, leader),))


def test_unreadable_spec_is_an_error() -> None:
    """An unreadable spec causes an error (Q-23)."""
    plan = reconcile(LiveGroup(now=builders.NOW, leader=LEADER, obj=LWS | {"spec": {"replicas": "two"}}))

    assert plan.error is not None
    assert "spec.replicas" in plan.error


def test_new_leader_waits_until_previous_workers_are_deleted() -> None:
    """The StatefulSet cannot be created while its name is in use. The deletion triggers a reconcile (N-PT-4)."""
    before = builders.worker_statefulset(EARLIER)
    going = before | {"metadata": before["metadata"] | {"deletionTimestamp": "2026-03-01T12:00:00Z"}}

    waiting = reconcile(new_group(LWS, statefulsets=(going,)))
    assert not any(isinstance(action, Create) for action in waiting.actions)
    assert any(isinstance(action, Create) for action in reconcile(new_group(LWS)).actions)


def test_differs_from_upstream_names_of_old_workers_are_awaited() -> None:
    """New workers are created only after the old workers with the same names have been deleted.

    Otherwise, the StatefulSet controller might retry the creation only after 20 s (R-WSTS-1, ADR 45).
    """
    old = builders.worker_pod(EARLIER, deleting=True)
    orphan = old | {"metadata": {**old["metadata"], "ownerReferences": []}}

    assert not any(isinstance(action, Create) for action in reconcile(group(old, statefulsets=())).actions)
    assert any(isinstance(action, Create) for action in reconcile(group(statefulsets=())).actions)
    assert any(isinstance(action, Create) for action in reconcile(group(orphan, statefulsets=())).actions)
