"""What happens to a group that has a limit of restarts."""

from datetime import timedelta
from typing import Any

import pytest
from tests import builders

from kuberuntime.objects import meta
from kuberuntime.objects.meta import UID, JSONObject
from kuberuntime.objects.resources import PODS
from kuberuntime.plan import Action, Apply, Delete, Patch, Plan, Together
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
    known = {"statefulsets": (builders.worker_statefulset(leader),), "revisions": (builders.revision(obj),)}
    return LiveGroup(now=builders.NOW, leader=leader, obj=obj, pods=(leader, *workers), **(known | fields))


def record(state: RecreationState, *, leader: str = "", used: int | None = None, resumed: str = "") -> JSONObject:
    """Return the record of a recreation, by default of this leader."""
    found = Recreation(
        leader=UID(leader or meta.uid(LEADER)),
        revision=KEY,
        count=2,
        due=builders.NOW - timedelta(seconds=1),
        failure=Failure(pod="web-0-1"),
        state=state,
        used=used,
        resumed=resumed,
    )
    return recreation.build(limited(), LEADER, found)


def steps(plan: Plan) -> list[str]:
    """Return what a plan writes, in order."""
    assert plan.error is None
    return [step for action in plan.actions for step in _steps(action)]


def _steps(action: Action) -> list[str]:
    match action:
        case Together():
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


def test_a_restart_is_counted_before_it_happens() -> None:
    """N-RB-1, N-RB-3: and recorded before that, so that it counts once whatever happens in between."""
    first = reconcile(group(limited(), FAILED))

    assert steps(first) == ["recreated", f'{{"{KEY}/0":1}}', "delete web-0: RecreateGroup"]
    (recorded, *_) = first.actions
    assert isinstance(recorded, Apply)
    counted = group(limited(used=1), FAILED, record=recorded.object)
    assert steps(reconcile(counted)) == ["delete web-0: RecreateGroup"]
    uncounted = group(limited(), FAILED, record=recorded.object)
    assert steps(reconcile(uncounted)) == [f'{{"{KEY}/0":1}}', "delete web-0: RecreateGroup"]


@pytest.mark.parametrize(("limit", "used"), [(0, None), (1, 1), (1, 7)])
def test_a_group_without_restarts_left_is_exhausted(limit: int, used: int | None) -> None:
    """N-RB-1, N-RB-4, N-AT-20: the leader is marked first, and deleted last."""
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
def test_each_limit_means_the_same(obj: JSONObject, defaults: RestartSettings) -> None:
    """N-RB-1: the annotation is another name of the field."""
    assert steps(reconcile(group(obj, FAILED, facts={names.BACKOFF: defaults}))) == EXHAUSTION


def test_without_a_limit_nothing_is_counted() -> None:
    """N-RB-1, N-RB-16: whatever the annotation holds."""
    obj = limited(None)
    obj["metadata"]["annotations"][labels.GROUP_RESTART_COUNTS] = "null"

    assert steps(reconcile(group(obj, FAILED))) == ["delete web-0: RecreateGroup", "recreated"]


def test_nothing_is_restarted_while_counts_cannot_be_read() -> None:
    """N-RB-10."""
    obj = limited()
    obj["metadata"]["annotations"][labels.GROUP_RESTART_COUNTS] = "null"

    plan = reconcile(group(obj, FAILED))

    assert plan.actions == ()
    assert plan.error == "pod default/web-0: invalid group restart counts: expected a JSON object"


def test_a_group_that_waits_is_counted_when_it_is_due() -> None:
    waiting = group(limited(2, 1), record=record(RecreationState.WAITING))

    assert steps(reconcile(waiting)) == ["recreated", f'{{"{KEY}/0":2}}', "delete web-0: RecreateGroup"]


def test_a_smaller_limit_holds_for_a_group_that_waits() -> None:
    waiting = group(limited(1, 1), FAILED, record=record(RecreationState.WAITING))

    assert steps(reconcile(waiting)) == EXHAUSTION


@pytest.mark.parametrize("obj", [limited(1, 1), limited(9, 1), limited(None)])
def test_what_was_recorded_is_done_by_the_next_manager(obj: JSONObject) -> None:
    """N-RB-5: no larger limit stops it."""
    begun = group(obj, FAILED, record=record(RecreationState.EXHAUSTED))

    assert steps(reconcile(begun)) == EXHAUSTION[2:]


def test_a_new_text_resumes_what_is_not_terminated_yet() -> None:
    obj = limited(1, 1, resume_group_restarts="again")

    plan = reconcile(group(obj, FAILED, record=record(RecreationState.EXHAUSTED)))

    assert steps(plan) == ["recreated", "delete web-0: RecreateGroup"]


def test_a_marked_leader_is_deleted_and_its_pods_are_kept() -> None:
    """N-RB-4: repeated until it is done, then nothing."""
    assert steps(reconcile(group(limited(), FAILED, leader=EXHAUSTED))) == EXHAUSTION[3:]
    assert steps(reconcile(group(limited(), FAILED, leader=TERMINATED))) == ["keep web-0-1"]
    kept = FAILED | {"metadata": FAILED["metadata"] | {"finalizers": [FINALIZER]}}
    assert reconcile(group(limited(), kept, leader=TERMINATED)) == Plan()


def test_only_pods_of_the_leader_are_kept() -> None:
    """N-RB-2, N-AT-17: not those of one before it."""
    earlier = builders.leader_pod(limited(), uid="earlier")
    left = builders.worker_pod(earlier, restarts=1)

    assert steps(reconcile(group(limited(), left, leader=EXHAUSTED))) == ["delete web-0: ReplicaRestartBudgetExceeded"]


def test_a_recovered_group_keeps_no_further_pods() -> None:
    recovered = TERMINATED | {
        "metadata": TERMINATED["metadata"] | {"annotations": meta.annotations(TERMINATED) | {labels.RECOVER: "true"}}
    }

    assert reconcile(group(limited(), FAILED, leader=recovered)) == Plan()


def test_another_restart_policy_does_not_recover_a_group() -> None:
    """N-RB-5."""
    never = builders.leaderworkerset_object(template={"restartPolicy": "None"})

    assert steps(reconcile(group(never, FAILED, leader=TERMINATED))) == ["keep web-0-1"]


def test_differs_from_upstream_a_leader_that_others_delete_uses_no_restart() -> None:
    """N-RB-9: rollouts also delete leaders, and are not distinguishable from a user."""
    going = builders.leader_pod(limited(), deleting=True)

    assert reconcile(group(limited(0), leader=going)) == Plan()
