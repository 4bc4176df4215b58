"""Tests the recreation of a group that has a restart limit."""

from datetime import timedelta
from typing import Any

import pytest
from tests import builders

from kuberuntime.objects import meta
from kuberuntime.objects.meta import UID, JSONObject
from kuberuntime.objects.resources import PODS
from kuberuntime.plan import Action, Apply, Concurrently, Delete, Patch, Plan
from leaderworkerset.api import labels
from leaderworkerset.api.recreationrecord import Failure, Recreation, RecreationState
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.capabilities import names
from leaderworkerset.capabilities.deciding import reconcile_group as reconcile
from leaderworkerset.core.policies import recreation
from leaderworkerset.core.policies.policy import LiveGroup
from leaderworkerset.core.policies.recreation import RestartSettings

FINALIZER = labels.GROUP_RESTART_BUDGET_CLEANUP


def limited(limit: int | None = 1, used: int | None = None, **annotations: str) -> JSONObject:
    own = {labels.PREFIX + name.replace("_", "-"): text for name, text in annotations.items()}
    if used is not None:
        own[labels.GROUP_RESTART_COUNTS] = f'{{"{KEY}/0":{used}}}'
    template = {} if limit is None else {"maxGroupRestarts": limit}
    return builders.leaderworkerset_object(metadata={"annotations": own}, template=template)


KEY = builders.key_of(builders.leaderworkerset_object())
LEADER = builders.leader_pod(builders.leaderworkerset_object())
FAILED = builders.worker_pod(LEADER, restarts=1)
EXHAUSTED = LEADER | {
    "metadata": LEADER["metadata"]
    | {"annotations": {labels.GROUP_RESTART_BUDGET_EXHAUSTED: "true"}, "finalizers": [FINALIZER]}
}
TERMINATED = EXHAUSTED | {"metadata": EXHAUSTED["metadata"] | {"deletionTimestamp": "2026-03-01T12:00:00Z"}}


def group(obj: JSONObject, *workers: JSONObject, leader: JSONObject = LEADER, **fields: Any) -> LiveGroup:
    return builders.whole_group(*workers, lws=obj, leader=leader, **fields)


def record(state: RecreationState, *, leader: str = "", used: int | None = None, resumed: str = "") -> JSONObject:
    """Return a recreation record. By default, it is for this leader."""
    found = Recreation(
        leader=UID(leader or meta.uid(LEADER)),
        revision=KEY,
        count=2,
        due_at=builders.NOW - timedelta(seconds=1),
        failure=Failure(pod="web-0-1"),
        state=state,
        used_restarts=used,
        resumed=resumed,
    )
    return recreation.build(limited(), LEADER, found)


def steps(plan: Plan) -> list[str]:
    """Return the ordered writes of a plan."""
    assert plan.error is None
    return [step for action in plan.actions for step in _steps(action)]


def _steps(action: Action) -> list[str]:
    match action:
        case Concurrently():
            return [step for sequence in action.sequences for one in sequence for step in _steps(one)]
        case Apply():
            return [meta.annotations(action.object)[labels.RECREATION_STATE]]
        case Patch(resource=resource) if resource == LEADERWORKERSETS:
            assert {"uid", "resourceVersion"} <= action.patch["metadata"].keys()
            return [meta.annotations(action.patch).get(labels.GROUP_RESTART_COUNTS, "confirm")]
        case Patch(resource=resource) if resource == PODS:
            return [f"keep {action.key.name}"]
        case Delete():
            return [f"delete {action.key.name}: {event.reason}" for event in action.on_success]
        case _:
            raise AssertionError(action)


EXHAUSTION = ["confirm", "exhausted", "keep web-0", "keep web-0-1", "delete web-0: ReplicaRestartBudgetExceeded"]


def test_restart_is_counted_before_it_happens() -> None:
    """The restart is recorded first, so that it is counted exactly once despite interruptions (N-RB-1, N-RB-3)."""
    first = reconcile(group(limited(), FAILED))

    assert steps(first) == ["recreated", f'{{"{KEY}/0":1}}', "delete web-0: RecreateGroup"]
    (recorded, *_) = first.actions
    assert isinstance(recorded, Apply)
    counted = group(limited(used=1), FAILED, record=recorded.object)
    assert steps(reconcile(counted)) == ["delete web-0: RecreateGroup"]
    uncounted = group(limited(), FAILED, record=recorded.object)
    assert steps(reconcile(uncounted)) == [f'{{"{KEY}/0":1}}', "delete web-0: RecreateGroup"]


@pytest.mark.parametrize(("limit", "used"), [(0, None), (1, 1), (1, 7)])
def test_group_without_restarts_left_is_exhausted(limit: int, used: int | None) -> None:
    """The leader is labeled first, and deleted last (N-RB-1, N-RB-4, N-AT-20)."""
    plan = reconcile(group(limited(limit, used), FAILED))

    assert steps(plan) == EXHAUSTION
    delete = plan.actions[-1]
    assert isinstance(delete, Delete)
    assert (delete.propagation, delete.uid) == ("Foreground", meta.uid(LEADER))
    (event,) = delete.on_success
    note = "Restart budget exhausted; terminated group 0 and stopped automatic recovery"
    assert (event.type, event.action, event.note) == ("Warning", "Delete", note)
    assert event.regarding["kind"] == "LeaderWorkerSet"


@pytest.mark.parametrize(
    ("obj", "defaults"),
    [
        (limited(None, 1, max_group_restarts="1"), RestartSettings()),
        (limited(None, 1), RestartSettings(max_restarts=1)),
        (limited(1, 1, max_group_restarts="9"), RestartSettings(max_restarts=9)),
        (limited(1, 1, restart_backoff="off"), RestartSettings()),
    ],
    ids=["annotation", "manager", "field before both", "without back-off"],
)
def test_field_annotation_and_default_limit_restarts_equally(obj: JSONObject, defaults: RestartSettings) -> None:
    """The annotation is an alias for the field (N-RB-1)."""
    assert steps(reconcile(group(obj, FAILED, facts={names.BACKOFF: defaults}))) == EXHAUSTION


def test_restarts_are_not_counted_without_a_limit() -> None:
    """The content of the annotation has no effect (N-RB-1, N-RB-16)."""
    obj = limited(None)
    obj["metadata"]["annotations"][labels.GROUP_RESTART_COUNTS] = "null"

    assert steps(reconcile(group(obj, FAILED))) == ["delete web-0: RecreateGroup", "recreated"]


def test_group_is_not_restarted_while_counts_are_unreadable() -> None:
    """If the counts are unreadable, the group is not restarted (N-RB-10)."""
    obj = limited()
    obj["metadata"]["annotations"][labels.GROUP_RESTART_COUNTS] = "null"

    plan = reconcile(group(obj, FAILED))

    assert plan.actions == ()
    assert plan.error == "pod default/web-0: invalid group restart counts: expected a JSON object"


def test_delayed_restart_is_counted_when_due() -> None:
    waiting = group(limited(2, 1), record=record(RecreationState.WAITING))

    assert steps(reconcile(waiting)) == ["recreated", f'{{"{KEY}/0":2}}', "delete web-0: RecreateGroup"]


def test_smaller_limit_applies_to_a_delayed_restart() -> None:
    waiting = group(limited(1, 1), FAILED, record=record(RecreationState.WAITING))

    assert steps(reconcile(waiting)) == EXHAUSTION


@pytest.mark.parametrize("obj", [limited(1, 1), limited(9, 1), limited(None)])
def test_recorded_exhaustion_is_completed_by_the_next_manager(obj: JSONObject) -> None:
    """A larger limit does not reset a group that is recorded as exhausted (N-RB-5)."""
    begun = group(obj, FAILED, record=record(RecreationState.EXHAUSTED))

    assert steps(reconcile(begun)) == EXHAUSTION[2:]


def test_new_recovery_value_resumes_an_unfinished_exhaustion() -> None:
    obj = limited(1, 1, resume_group_restarts="again")

    plan = reconcile(group(obj, FAILED, record=record(RecreationState.EXHAUSTED)))

    assert steps(plan) == ["recreated", "delete web-0: RecreateGroup"]


def test_marked_leader_is_deleted_and_its_pods_are_kept() -> None:
    """The deletion is retried until it succeeds. No action follows (N-RB-4)."""
    assert steps(reconcile(group(limited(), FAILED, leader=EXHAUSTED))) == EXHAUSTION[3:]
    assert steps(reconcile(group(limited(), FAILED, leader=TERMINATED))) == ["keep web-0-1"]
    kept = FAILED | {"metadata": FAILED["metadata"] | {"finalizers": [FINALIZER]}}
    assert reconcile(group(limited(), kept, leader=TERMINATED)) == Plan()


def test_pods_of_an_earlier_leader_are_not_kept() -> None:
    """Pods of a previous leader are not counted (N-RB-2, N-AT-17)."""
    earlier = builders.leader_pod(limited(), uid="earlier")
    left = builders.worker_pod(earlier, restarts=1)

    assert steps(reconcile(group(limited(), left, leader=EXHAUSTED))) == ["delete web-0: ReplicaRestartBudgetExceeded"]


def test_recovered_group_keeps_no_further_pods() -> None:
    recovered = TERMINATED | {
        "metadata": TERMINATED["metadata"] | {"annotations": meta.annotations(TERMINATED) | {labels.RECOVER: "true"}}
    }

    assert reconcile(group(limited(), FAILED, leader=recovered)) == Plan()


def test_restart_policy_change_does_not_recover_a_group() -> None:
    """A change to the restart policy does not restore an exhausted group (N-RB-5)."""
    never = builders.leaderworkerset_object(template={"restartPolicy": "None"})

    assert steps(reconcile(group(never, FAILED, leader=TERMINATED))) == ["keep web-0-1"]


def test_differs_from_upstream_deleted_leader_uses_no_restart() -> None:
    """The deletion of a leader does not count toward the restart limit.

    The manager cannot distinguish deletions by rollouts from deletions by users (N-RB-9).
    """
    going = builders.leader_pod(limited(), deleting=True)

    assert reconcile(group(limited(0), leader=going)) == Plan()
