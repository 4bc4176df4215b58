"""Tests complete plans for a group."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from testkit import objects
from tests import builders

from kuberuntime.objects import meta
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, PODS, STATEFULSETS
from kuberuntime.plan import AggregatedNote, Apply, Create, Delete, Emit, Event, Plan
from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.api.recreationrecord import Recreation, RecreationState
from leaderworkerset.capabilities.deciding import reconcile_group as reconcile
from leaderworkerset.core import decisionevents
from leaderworkerset.core.leaderworkerset import services
from leaderworkerset.core.pod import statefulset
from leaderworkerset.core.pod.reconcile import required_node
from leaderworkerset.core.policies import recreation
from leaderworkerset.core.policies.policy import LiveGroup
from leaderworkerset.core.restarts.failure import describe

LWS = builders.leaderworkerset_object()
LEADER = builders.leader_pod(LWS)
SET = builders.worker_statefulset(LEADER)
REVISION = builders.revision(LWS)
OWN_SERVICES = {"networkConfig": {"subdomainPolicy": "UniquePerReplica"}}
RACK = {"annotations": {labels.EXCLUSIVE_TOPOLOGY: "rack"}}


group = partial(builders.whole_group, lws=LWS, leader=LEADER, statefulsets=(SET,))


def new_group(lws: dict[str, Any] = LWS, **fields: Any) -> LiveGroup:
    fields = {"leader": builders.leader_pod(lws), "statefulsets": ()} | fields
    return group(lws=lws, **fields)


def create_workers(lws: dict[str, Any], leader: dict[str, Any], selector: dict[str, str] | None = None) -> Create:
    live = leaderworkerset.decode(lws)
    regarding, related = decisionevents.reference(lws), decisionevents.reference(leader)
    created = "Created worker statefulset for leader pod web-0"
    many = AggregatedNote("Created worker statefulsets for groups {numbers}", 0)
    failed = "Failed to create worker statefulset for leader pod web-0: {error}"
    return Create(
        resource=STATEFULSETS,
        object=statefulset.build(live, live, leader, selector or {}),
        unless_own=True,
        on_success=(Event("Normal", "GroupsProgressing", "Create", created, regarding, related, of_many=many),),
        on_failure=(Event("Warning", "FailedCreate", "Create", failed, regarding, related),),
    )


def test_new_leader_gets_its_workers() -> None:
    """The plan for a new leader creates its workers (R-WSTS-1, R-WSTS-2)."""
    assert reconcile(new_group()) == Plan((create_workers(LWS, LEADER),))


def test_group_below_a_partition_has_the_revision_of_its_leader() -> None:
    """Size and template are the original values, and labels the current values (R-WSTS-4, R-REV-12)."""
    now = builders.leaderworkerset_object(size=2, image="app:2", metadata={"labels": {"team": "new"}})
    before = builders.leaderworkerset_object(size=4, image="app:1")
    leader = builders.leader_pod(before)
    observed = builders.live_group(
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


def test_complete_group_is_not_changed() -> None:
    """A complete group is not changed (R-ARC-3, R-WSTS-1k, Q-26)."""
    assert reconcile(group(builders.worker_pod(LEADER))) == Plan()


def test_group_of_one_has_no_worker_statefulset() -> None:
    """A group with one pod does not have a worker StatefulSet (R-WSTS-8)."""
    assert reconcile(new_group(builders.leaderworkerset_object(size=1))) == Plan()


def test_differs_from_upstream_group_has_the_size_of_its_leader() -> None:
    """The annotation of a leader determines the number of its workers, even if the size has changed (ADR 10)."""
    small, large = builders.leaderworkerset_object(size=1), builders.leaderworkerset_object(size=3)
    revisions_ = [builders.revision(small, number=1), builders.revision(large, number=2)]
    of_small = builders.leader_pod(small, annotations={labels.SIZE: "1"})
    of_large = builders.leader_pod(large, annotations={labels.SIZE: "3"})

    while_growing = builders.live_group(leader=of_small, obj=large, pods=[of_small], revisions=revisions_)
    while_shrinking = builders.live_group(leader=of_large, obj=small, pods=[of_large], revisions=revisions_)

    assert reconcile(while_growing) == Plan()
    (created,) = reconcile(while_shrinking).actions
    assert isinstance(created, Create)
    assert created.object["spec"]["replicas"] == 2


def test_group_gets_its_own_service() -> None:
    """The Service is created before the workers (R-SVC-2, R-POD-7)."""
    lws = builders.leaderworkerset_object(spec=OWN_SERVICES)
    leader = builders.leader_pod(lws)
    service = services.create(services.build_for_group(leader, "web"), lws, leader)

    assert reconcile(new_group(lws)) == Plan((service, create_workers(lws, leader)))
    assert reconcile(new_group(lws, service=builders.SETTLED)) == Plan((create_workers(lws, leader),))


LEADER_READY = builders.leaderworkerset_object(spec={"startupPolicy": "LeaderReady"})


def test_workers_wait_for_a_ready_leader() -> None:
    """The pod phase has no effect (R-WSTS-1h)."""
    waiting = builders.leader_pod(LEADER_READY, ready=False)
    ready = builders.leader_pod(LEADER_READY, ready=True, phase="Pending")

    assert reconcile(new_group(LEADER_READY, leader=waiting)) == Plan()
    assert reconcile(new_group(LEADER_READY, leader=ready)) == Plan((create_workers(LEADER_READY, ready),))


def test_missing_revision_is_awaited() -> None:
    """The group waits for its revision (R-WSTS-1 (i), Q-24)."""
    leader = builders.leader_pod(LWS, key="unknown")

    assert reconcile(new_group(leader=leader)) == Plan(requeue_after=1.0)


def test_workers_wait_until_their_leader_is_placed() -> None:
    """Workers are created after their leader is scheduled (R-WSTS-6)."""
    lws = builders.leaderworkerset_object(metadata=RACK)
    placed = builders.leader_pod(lws, node="n1")
    node = {"metadata": {"name": "n1", "labels": {"rack": "r7"}}}

    assert reconcile(new_group(lws)) == Plan()
    assert required_node(new_group(lws)) == ""
    assert required_node(new_group(lws, leader=placed)) == "n1"
    assert required_node(new_group(leader=placed)) == ""
    assert required_node(group(lws=lws, leader=placed)) == ""
    assert reconcile(new_group(lws, leader=placed, nodes={"n1": node})) == Plan(
        (create_workers(lws, placed, {"rack": "r7"}),)
    )


def test_missing_node_is_an_error() -> None:
    """A missing node results in an error (R-WSTS-6)."""
    lws = builders.leaderworkerset_object(metadata=RACK)

    plan = reconcile(new_group(lws, leader=builders.leader_pod(lws, node="n1")))

    assert plan == Plan(error='pod default/web-0: getting node "n1": nodes "n1" not found')


@pytest.mark.parametrize(
    "observed",
    [
        LiveGroup(now=builders.NOW, leader=LEADER),
        group(
            statefulsets=(), lws=builders.leaderworkerset_object(metadata={"deletionTimestamp": "2026-03-01T11:00:00Z"})
        ),
        group(statefulsets=(), leader=builders.leader_pod(LWS, deleting=True)),
        group(
            statefulsets=(),
            leader=builders.leader_pod(LWS, deleting=True),
            lws=builders.leaderworkerset_object(spec=OWN_SERVICES),
        ),
    ],
    ids=["no LeaderWorkerSet", "going LeaderWorkerSet", "going leader", "going leader, own services"],
)
def test_terminating_objects_are_not_reconciled(observed: LiveGroup) -> None:
    """Terminating objects are not reconciled (R-POD-1, R-POD-5.4, R-POD-7, R-SVC-8)."""
    assert reconcile(observed) == Plan()


def ignored(pod: dict[str, Any], why: str) -> Plan:
    return Plan((Emit(events=(decisionevents.ignored_event(pod, LWS, why),)),))


@pytest.mark.parametrize("label", [labels.NAME, labels.WORKER_INDEX])
def test_differs_from_upstream_pod_without_labels_is_reported(label: str) -> None:
    """If a required label of a pod is missing, the pod is reported, and the reconciliation is not retried.

    The pod is reconciled again when it changes (R-POD-1).
    """
    pod = builders.leader_pod(LWS, extra_labels={label: ""})

    assert reconcile(group(leader=pod)) == ignored(pod, f"does not have the label {label}")


def test_worker_creates_no_objects() -> None:
    """The plan for a worker does not create objects (R-POD-2)."""
    worker = builders.worker_pod(builders.leader_pod(LWS))

    assert reconcile(LiveGroup(now=builders.NOW, leader=worker, obj=LWS)) == Plan()


def test_differs_from_upstream_failed_stray_worker_is_reported() -> None:
    """A failed worker whose name does not contain a leader name is reported (R-POD-5.3)."""
    stray = objects.pod("stray", metadata={"labels": {labels.NAME: "web", labels.WORKER_INDEX: "1"}})
    failed = stray | {"status": {"phase": "Running", "containerStatuses": [{"restartCount": 1}]}}

    assert reconcile(group(leader=stray)) == Plan()
    assert reconcile(group(leader=failed)) == ignored(failed, "has failed and its name does not contain a leader name")


def test_leader_with_a_worker_name_is_reported() -> None:
    """A leader with the name of a worker is reported (R-POD-6)."""
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
        leader=meta.uid(leader), revision=revision, count=count, due_at=due, failure=describe(failed), state=state
    )
    return recreation.build(LWS, leader, made)


def apply(obj: dict[str, Any], *on_success: Event) -> Apply:
    return Apply(resource=CONTROLLER_REVISIONS, object=obj, manager="lws", on_success=on_success)


EARLIER = builders.leader_pod(LWS, uid="earlier")


def test_failed_worker_deletes_its_leader_and_is_recorded() -> None:
    """The leader is deleted immediately, by UID, and in the foreground (R-POD-5)."""
    assert reconcile(group(FAILED)) == Plan((delete_leader("web-0-1"), apply(record(1, 0))))


def test_several_failures_of_a_group_cause_one_recreation() -> None:
    """A group has one key and one plan. A record requests its recreation once (R-POD-5)."""
    observed = group(FAILED, builders.worker_pod(LEADER, 2, deleting=True))

    assert len([a for a in reconcile(observed).actions if isinstance(a, Delete)]) == 1
    assert reconcile(group(FAILED, record=record(1, 0))) == Plan((delete_leader("web-0-1"),))
