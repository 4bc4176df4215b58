"""Groups that fail again, wait, or have lost pods: what is done about their leader."""

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
from leaderworkerset.capabilities.lostnodes.lost import wants_nodes
from leaderworkerset.core import decisionevents
from leaderworkerset.core.policies.policy import LiveGroup
from leaderworkerset.core.policies.recreation import RestartSettings


def test_a_group_that_fails_again_waits() -> None:
    """The record is written first, so that nothing is forgotten."""
    again = reconcile(group(FAILED, record=record(1, -60, leader=EARLIER)))

    note = "Pod web-0-1 failed again, group 0 is recreated in 10 s (number 2 in a row)"
    told = Event("Warning", "BackOff", "Delete", note, decisionevents.reference(LWS), decisionevents.reference(LEADER))
    assert again == Plan((apply(record(2, 10, RecreationState.WAITING), told),), requeue_after=10.0)


def test_a_condemned_group_goes_when_its_time_has_come() -> None:
    """Also when the pod that failed is gone and replaced, and when another manager looks."""
    whole = builders.worker_pod(LEADER)

    waiting = record(2, 10, RecreationState.WAITING)
    assert reconcile(group(whole, record=waiting)) == Plan(requeue_after=10.0)
    assert reconcile(group(whole, sets=(), record=waiting)) == Plan(requeue_after=10.0)
    assert reconcile(group(whole, record=record(2, 0, RecreationState.WAITING))) == Plan(
        (apply(record(2, 0)), delete_leader("web-0-1"))
    )


def test_a_condemned_group_goes_at_once_where_the_clock_was_ahead_when_its_time_was_recorded() -> None:
    whole = builders.worker_pod(LEADER)
    ahead = record(2, 400 * 86400, RecreationState.WAITING)

    delete = Plan((apply(record(2, 400 * 86400)), delete_leader("web-0-1")))
    assert reconcile(group(whole, record=ahead)) == delete


def test_a_record_of_a_leaderworkerset_before_this_one_counts_for_nothing() -> None:
    """It has the name of ours until the garbage collector takes it."""
    known = record(1, -60, leader=EARLIER)
    (owner,) = known["metadata"]["ownerReferences"]
    known["metadata"]["ownerReferences"] = [owner | {"uid": "uid-of-predecessor"}]

    assert reconcile(group(FAILED, record=known)) == Plan((delete_leader("web-0-1"), apply(record(1, 0))))


def test_a_recreation_that_was_recorded_and_not_done_is_done() -> None:
    """The record comes before the deletion: a manager that died between both is made good for, with one write."""
    assert reconcile(group(record=record(2, -5))) == Plan((delete_leader("web-0-1"),))


def annotated(**found: str) -> dict[str, Any]:
    names = {labels.PREFIX + name.replace("_", "-"): text for name, text in found.items()}
    return builders.leaderworkerset_object(metadata={"annotations": names})


def test_without_backoff_every_failure_recreates_at_once_and_nothing_is_recorded() -> None:
    """As the Go controller does: R-POD-5."""
    off = annotated(restart_backoff="off")
    earlier = record(7, -1, leader=EARLIER)

    assert reconcile(group(FAILED, lws=off, record=earlier)) == Plan((delete_leader("web-0-1"),))
    assert reconcile(group(FAILED, facts={names.BACKOFF: RestartSettings(backs_off=False)})) == Plan(
        (delete_leader("web-0-1"),)
    )


def test_turning_the_backoff_off_lets_a_group_go_that_waits() -> None:
    plan = reconcile(group(lws=annotated(restart_backoff="off"), record=record(2, 10, RecreationState.WAITING)))

    assert plan == Plan((apply(record(2, 10)), delete_leader("web-0-1")))


def test_a_new_text_starts_anew() -> None:
    """Also a group that waits goes at once."""
    resumed = annotated(resume_group_restarts="again")
    plan = reconcile(group(FAILED, lws=resumed, record=record(4, 60, RecreationState.WAITING)))

    anew = record(1, 0)
    anew["metadata"]["annotations"][labels.RESUMED] = "again"
    assert plan == Plan((apply(anew), delete_leader("web-0-1")))
    done = group(FAILED, lws=resumed, record=anew)
    assert reconcile(done) == Plan((delete_leader("web-0-1"),))


def stuck_worker() -> dict[str, Any]:
    return builders.worker_pod(LEADER, deleting=True, node="n1")


def test_a_lost_worker_is_released_while_its_leader_waits_for_it() -> None:
    """The group is recreated as one: the leader is on its way already."""
    lws = annotated(release_lost_pods_after="1s")
    leader = builders.leader_pod(lws, deleting=True)
    observed = group(stuck_worker(), lws=lws, leader=leader, nodes={"n1": None})

    assert wants_nodes(observed) == {"n1"}
    plan = reconcile(observed)

    assert [(type(action), action.grace_period) for action in plan.actions if isinstance(action, Delete)] == [
        (Delete, 0)
    ]
    assert plan.requeue_after == 30.0


def test_a_release_and_a_recreation_are_one_plan() -> None:
    lws = annotated(release_lost_pods_after="10s")
    plan = reconcile(group(stuck_worker(), lws=lws))

    assert plan.actions[0] == delete_leader("web-0-1")
    assert plan.requeue_after == 9.0


def test_lost_pods_are_waited_for_by_default() -> None:
    """As the Go controller does."""
    observed = group(stuck_worker(), leader=builders.leader_pod(LWS, deleting=True))

    assert wants_nodes(observed) == set()
    assert wants_nodes(LiveGroup(now=builders.NOW, leader=LEADER)) == set()
    assert reconcile(observed) == Plan()


def test_the_successor_of_a_condemned_leader_starts_unmarked() -> None:
    """A record is for one UID."""
    observed = new_group(record=record(3, 10, leader=EARLIER))

    assert reconcile(observed) == Plan((create_workers(LWS, LEADER),))


def test_a_policy_that_recreates_nothing_stops_a_recreation_that_waits() -> None:
    """R-POD-3: the live spec decides."""
    never = builders.leaderworkerset_object(template={"restartPolicy": "None"})

    assert reconcile(group(FAILED, lws=never, record=record(2, 0))) == Plan()


def test_a_worker_that_vanished_costs_its_leader() -> None:
    """R-POD-11."""
    gone = builders.worker_pod(LEADER, deleting=True)

    assert reconcile(group(gone=(gone,))).actions[0] == delete_leader("web-0-1")


def test_a_failure_that_does_not_count_leaves_the_leader_its_normal_course() -> None:
    """R-POD-5.2: a group that has not started yet still gets its workers."""
    lws = builders.leaderworkerset_object(template={"restartPolicy": "RecreateGroupAfterStart"})
    leader = builders.leader_pod(lws, init_restarts=1, phase="Pending")

    assert reconcile(new_group(lws, leader=leader)) == Plan((create_workers(lws, leader),))


def test_a_spec_that_cannot_be_read_is_an_error() -> None:
    """Q-23."""
    plan = reconcile(LiveGroup(now=builders.NOW, leader=LEADER, obj=LWS | {"spec": {"replicas": "two"}}))

    assert plan.error is not None
    assert "spec.replicas" in plan.error


def test_a_new_leader_waits_until_the_workers_of_its_predecessor_are_gone() -> None:
    """N-PT-4: its StatefulSet cannot be created under a name that is taken; its deletion is observed."""
    before = builders.worker_statefulset(EARLIER)
    going = before | {"metadata": before["metadata"] | {"deletionTimestamp": "2026-03-01T12:00:00Z"}}

    waiting = reconcile(new_group(LWS, sets=(going,)))
    assert not any(isinstance(action, Create) for action in waiting.actions)
    assert any(isinstance(action, Create) for action in reconcile(new_group(LWS)).actions)
