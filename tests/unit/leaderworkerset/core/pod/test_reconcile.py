"""Whole plans for a group."""

from datetime import timedelta
from typing import Any

import pytest
from tests import builders

from kuberuntime.objects import meta
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, PODS, SERVICES, STATEFULSETS
from kuberuntime.plan import Apply, Create, Delete, Emit, Event, OneOfMany, Plan
from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.core import decisionevents
from leaderworkerset.core.leaderworkerset import services
from leaderworkerset.core.pod import statefulset
from leaderworkerset.core.pod.reconcile import reconcile, wants_lost_nodes, wants_node
from leaderworkerset.core.policies import recreation
from leaderworkerset.core.policies.policy import LiveGroup
from leaderworkerset.core.policies.recreation import Recreation, RecreationState
from leaderworkerset.core.restarts.failure import describe
from leaderworkerset.core.restarts.settings import RestartSettings

LWS = builders.leaderworkerset_object()
LEADER = builders.leader_pod(LWS)
SET = builders.worker_statefulset(LEADER)
REVISION = builders.revision(LWS)
OWN_SERVICES = {"networkConfig": {"subdomainPolicy": "UniquePerReplica"}}
RACK = {"annotations": {labels.EXCLUSIVE_TOPOLOGY: "rack"}}


def group(
    *workers: dict[str, Any],
    lws: dict[str, Any] = LWS,
    leader: dict[str, Any] = LEADER,
    sets: tuple[dict[str, Any], ...] = (SET,),
    **fields: Any,
) -> LiveGroup:
    return LiveGroup(
        now=builders.NOW,
        leader=leader,
        obj=lws,
        pods=(leader, *workers),
        statefulsets=sets,
        revisions=(builders.revision(lws),),
        **fields,
    )


def new_group(lws: dict[str, Any] = LWS, **fields: Any) -> LiveGroup:
    fields = {"leader": builders.leader_pod(lws), "sets": ()} | fields
    return group(lws=lws, **fields)


def create_workers(lws: dict[str, Any], leader: dict[str, Any], selector: dict[str, str] | None = None) -> Create:
    live = leaderworkerset.decode(lws)
    regarding, related = decisionevents.reference(lws), decisionevents.reference(leader)
    created = "Created worker statefulset for leader pod web-0"
    many = OneOfMany("Created worker statefulsets for groups {numbers}", 0)
    failed = "Failed to create worker statefulset for leader pod web-0: {error}"
    return Create(
        resource=STATEFULSETS,
        object=statefulset.build(live, live, leader, selector or {}),
        if_absent=True,
        on_success=(Event("Normal", "GroupsProgressing", "Create", created, regarding, related, of_many=many),),
        on_failure=(Event("Warning", "FailedCreate", "Create", failed, regarding, related),),
    )


def test_a_new_leader_gets_its_workers() -> None:
    """R-WSTS-1, R-WSTS-2."""
    assert reconcile(new_group()) == Plan((create_workers(LWS, LEADER),))


def test_a_group_that_is_built_in_an_update_is_of_its_leaders_revision() -> None:
    """R-WSTS-4, R-REV-12: size and template are those of then, labels those of now."""
    now = builders.leaderworkerset_object(size=2, image="app:2", metadata={"labels": {"team": "new"}})
    before = builders.leaderworkerset_object(size=4, image="app:1")
    leader = builders.leader_pod(before)
    observed = LiveGroup(
        now=builders.NOW,
        leader=leader,
        obj=now,
        pods=(leader,),
        revisions=(builders.revision(before), builders.revision(now, number=2)),
    )

    (action,) = reconcile(observed).actions

    assert isinstance(action, Create)
    spec = action.object["spec"]
    assert spec["replicas"] == 3
    assert spec["template"]["spec"]["containers"][0]["image"] == "app:1"
    assert spec["template"]["metadata"]["annotations"][labels.SIZE] == "4"
    assert meta.labels(action.object)["team"] == "new"


def test_a_group_that_is_complete_is_left_alone() -> None:
    """R-ARC-3, R-WSTS-1k, Q-26."""
    assert reconcile(group(builders.worker_pod(LEADER))) == Plan()


def test_a_group_of_one_has_no_worker_statefulset() -> None:
    """R-WSTS-8."""
    assert reconcile(new_group(builders.leaderworkerset_object(size=1))) == Plan()


def test_differs_from_upstream_a_group_is_built_as_large_as_its_leader_was_made_for() -> None:
    """Docs/adr/0010-bounds.md: while the size is edited from or to one, groups of both sizes come back."""
    small, large = builders.leaderworkerset_object(size=1), builders.leaderworkerset_object(size=3)
    revisions_ = [builders.revision(small, number=1), builders.revision(large, number=2)]
    of_small = builders.leader_pod(small, annotations={labels.SIZE: "1"})
    of_large = builders.leader_pod(large, annotations={labels.SIZE: "3"})

    while_growing = LiveGroup(now=builders.NOW, leader=of_small, obj=large, pods=[of_small], revisions=revisions_)
    while_shrinking = LiveGroup(now=builders.NOW, leader=of_large, obj=small, pods=[of_large], revisions=revisions_)

    assert reconcile(while_growing) == Plan()
    (created,) = reconcile(while_shrinking).actions
    assert isinstance(created, Create)
    assert created.object["spec"]["replicas"] == 2


def test_a_group_gets_a_service_of_its_own() -> None:
    """R-SVC-2, R-POD-7: the service comes before the workers."""
    lws = builders.leaderworkerset_object(spec=OWN_SERVICES)
    leader = builders.leader_pod(lws)
    service = Create(resource=SERVICES, object=services.build_for_group(leader, "web"), if_absent=True)

    assert reconcile(new_group(lws)) == Plan((service, create_workers(lws, leader)))
    assert reconcile(new_group(lws, has_service=True)) == Plan((create_workers(lws, leader),))


LEADER_READY = builders.leaderworkerset_object(spec={"startupPolicy": "LeaderReady"})


def test_workers_wait_for_a_ready_leader_where_they_shall() -> None:
    """R-WSTS-1h: the phase does not matter."""
    waiting = builders.leader_pod(LEADER_READY, ready=False)
    ready = builders.leader_pod(LEADER_READY, ready=True, phase="Pending")

    assert reconcile(new_group(LEADER_READY, leader=waiting)) == Plan()
    assert reconcile(new_group(LEADER_READY, leader=ready)) == Plan((create_workers(LEADER_READY, ready),))


def test_a_missing_revision_is_waited_for() -> None:
    """R-WSTS-1 (i), Q-24."""
    leader = builders.leader_pod(LWS, key="unknown")

    assert reconcile(new_group(leader=leader)) == Plan(requeue_after=1.0)


def test_workers_wait_until_their_leader_is_placed() -> None:
    """R-WSTS-6."""
    lws = builders.leaderworkerset_object(metadata=RACK)
    placed = builders.leader_pod(lws, node="n1")
    node = {"metadata": {"name": "n1", "labels": {"rack": "r7"}}}

    assert reconcile(new_group(lws)) == Plan()
    assert wants_node(new_group(lws)) == ""
    assert wants_node(new_group(lws, leader=placed)) == "n1"
    assert wants_node(new_group(leader=placed)) == ""
    assert wants_node(group(lws=lws, leader=placed)) == ""
    assert reconcile(new_group(lws, leader=placed, node=node)) == Plan((create_workers(lws, placed, {"rack": "r7"}),))


def test_a_node_that_is_gone_is_an_error() -> None:
    """R-WSTS-6."""
    lws = builders.leaderworkerset_object(metadata=RACK)

    plan = reconcile(new_group(lws, leader=builders.leader_pod(lws, node="n1")))

    assert plan == Plan(error='pod default/web-0: getting node "n1": nodes "n1" not found')


@pytest.mark.parametrize(
    "observed",
    [
        LiveGroup(now=builders.NOW, leader=LEADER),
        group(sets=(), lws=builders.leaderworkerset_object(metadata={"deletionTimestamp": "2026-03-01T11:00:00Z"})),
        group(sets=(), leader=builders.leader_pod(LWS, deleting=True)),
        group(
            sets=(),
            leader=builders.leader_pod(LWS, deleting=True),
            lws=builders.leaderworkerset_object(spec=OWN_SERVICES),
        ),
    ],
    ids=["no LeaderWorkerSet", "going LeaderWorkerSet", "going leader", "going leader, own services"],
)
def test_what_is_gone_or_going_is_left_alone(observed: LiveGroup) -> None:
    """R-POD-1, R-POD-5.4, R-POD-7, R-SVC-8."""
    assert reconcile(observed) == Plan()


def ignored(pod: dict[str, Any], why: str) -> Plan:
    return Plan((Emit(events=(decisionevents.ignored(pod, LWS, why),)),))


@pytest.mark.parametrize("label", [labels.NAME, labels.WORKER_INDEX])
def test_differs_from_upstream_a_pod_without_its_labels_is_reported_once(label: str) -> None:
    """R-POD-1: nothing is retried, as a change of the pod enqueues it."""
    pod = builders.leader_pod(LWS, extra_labels={label: ""})

    assert reconcile(group(leader=pod)) == ignored(pod, f"lacks the label {label}")


def test_a_worker_leads_nothing() -> None:
    """R-POD-2: nothing is built for it, whatever is missing."""
    worker = builders.worker_pod(builders.leader_pod(LWS))

    assert reconcile(LiveGroup(now=builders.NOW, leader=worker, obj=LWS)) == Plan()


def test_differs_from_upstream_a_failed_worker_whose_name_tells_no_leader_is_reported_once() -> None:
    """R-POD-5.3."""
    stray = builders.pod(
        "stray", labels_={labels.NAME: "web", labels.WORKER_INDEX: "1"}, annotations={}, owner=SET, ready=True, uid="u"
    )
    failed = stray | {"status": {"phase": "Running", "containerStatuses": [{"restartCount": 1}]}}

    assert reconcile(group(leader=stray)) == Plan()
    assert reconcile(group(leader=failed)) == ignored(failed, "failed, its name contains no leader's,")


def test_a_leader_that_looks_like_a_worker_is_complained_of() -> None:
    """R-POD-6."""
    leader = builders.leader_pod(LWS, annotations={labels.LEADER_NAME: "web-9"})
    note = (
        "leader pod default/web-0 contains mistake annotation 'leaderworkerset.sigs.k8s.io/leader-name': "
        "requires Kubernetes ≥v1.27 or v1.26 with StatefulSetStartOrdinal feature"
    )
    event = Event(
        "Warning", "FailedCreate", "Create", note, decisionevents.reference(LWS), decisionevents.reference(leader)
    )

    assert reconcile(new_group(leader=leader)) == Plan((Emit(events=(event,)),))


def delete_leader(failed: str) -> Delete:
    note = f"Worker pod {failed} failed, deleted leader pod web-0 to recreate group 0"
    return Delete(
        resource=PODS,
        key=meta.key(LEADER),
        propagation="Foreground",
        uid=meta.uid(LEADER),
        on_success=(
            Event(
                "Normal",
                "RecreateGroup",
                "Delete",
                note,
                decisionevents.reference(LWS),
                decisionevents.reference(LEADER),
            ),
        ),
    )


FAILED = builders.worker_pod(LEADER, restarts=1)


def record(
    count: int,
    wait: float,
    state: RecreationState = RecreationState.RECREATED,
    *,
    leader: dict[str, Any] = LEADER,
    failed: dict[str, Any] = FAILED,
) -> dict[str, Any]:
    due = builders.NOW + timedelta(seconds=wait)
    revision = meta.labels(leader)[labels.TEMPLATE_REVISION_HASH]
    made = Recreation(
        leader=meta.uid(leader), revision=revision, count=count, due=due, failure=describe(failed), state=state
    )
    return recreation.build(LWS, leader, made)


def apply(obj: dict[str, Any], *on_success: Event) -> Apply:
    return Apply(resource=CONTROLLER_REVISIONS, object=obj, manager="lws", on_success=on_success)


EARLIER = builders.leader_pod(LWS, uid="earlier")


def test_a_failed_worker_costs_its_leader_and_is_recorded_after() -> None:
    """R-POD-5: at once, by UID, in the foreground."""
    assert reconcile(group(FAILED)) == Plan((delete_leader("web-0-1"), apply(record(1, 0))))


def test_several_failures_of_a_group_are_one_recreation() -> None:
    """R-POD-5: one key, one plan; and a record condemns its leader once."""
    observed = group(FAILED, builders.worker_pod(LEADER, 2, deleting=True))

    assert len([a for a in reconcile(observed).actions if isinstance(a, Delete)]) == 1
    assert reconcile(group(FAILED, record=record(1, 0))) == Plan((delete_leader("web-0-1"),))


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
    assert reconcile(group(FAILED, defaults=RestartSettings(backs_off=False))) == Plan((delete_leader("web-0-1"),))


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
    observed = group(stuck_worker(), lws=lws, leader=leader, lost_nodes={"n1": None})

    assert wants_lost_nodes(observed) == {"n1"}
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

    assert wants_lost_nodes(observed) == set()
    assert wants_lost_nodes(LiveGroup(now=builders.NOW, leader=LEADER)) == set()
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
