"""Tests workers that terminate together with their leader."""

from typing import Any

import pytest
from tests import builders

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import STATEFULSETS
from kuberuntime.plan import Delete, Plan
from leaderworkerset.api import labels
from leaderworkerset.capabilities.deciding import reconcile_group as reconcile
from leaderworkerset.capabilities.termination import termination
from leaderworkerset.core.policies.policy import NOTHING, LiveGroup

PARALLEL = {"annotations": {labels.POD_TERMINATION_POLICY: "Parallel"}}
LWS = builders.leaderworkerset_object(metadata=PARALLEL)
LEADER = builders.leader_pod(LWS, deleting=True)
WORKERS = builders.worker_statefulset(LEADER)
DELETED = (Delete(resource=STATEFULSETS, key=meta.key(WORKERS), propagation="Foreground", uid=meta.uid(WORKERS)),)


def changed(obj: JSONObject, **metadata: Any) -> JSONObject:
    return obj | {"metadata": obj["metadata"] | metadata}


def group(lws: JSONObject = LWS, leader: JSONObject = LEADER, *workers: JSONObject) -> LiveGroup:
    return builders.live_group(leader=leader, obj=lws, pods=(leader,), statefulsets=workers or (WORKERS,))


def test_workers_of_a_terminating_leader_are_deleted() -> None:
    """Workers of a terminating leader are deleted (N-PT-1, N-PT-2)."""
    assert reconcile(group()) == Plan(DELETED)


def test_workers_of_a_deleted_set_end_by_their_own_annotation() -> None:
    """After the LeaderWorkerSet is deleted, the annotation of the StatefulSet applies (N-PT-2, N-PT-3)."""
    going = changed(LWS, deletionTimestamp="2026-03-01T11:59:59Z")
    assert reconcile(group(going)) == Plan(DELETED)
    assert reconcile(group({}, LEADER, changed(WORKERS, **PARALLEL))) == Plan(DELETED)
    assert reconcile(group({}, LEADER, WORKERS)) == Plan()


@pytest.mark.parametrize("text", ["Default", "parallel", ""])
def test_workers_terminate_after_their_leader_by_default(text: str) -> None:
    """Each value except Parallel selects the default, also for a group that was created with Parallel (N-PT-1)."""
    lws = builders.leaderworkerset_object(metadata={"annotations": {labels.POD_TERMINATION_POLICY: text}})
    assert reconcile(group(lws, LEADER, changed(WORKERS, **PARALLEL))) == Plan()


@pytest.mark.parametrize(
    ("field", "annotation", "is_parallel"),
    [
        ("Parallel", None, True),
        ("Parallel", "Default", True),
        ("Default", "Parallel", False),
        ("Default", None, False),
        (None, "Parallel", True),
        (None, None, False),
        (["Parallel"], None, False),
    ],
)
def test_field_counts_before_the_annotation(field: Any, annotation: str | None, *, is_parallel: bool) -> None:
    """The field overrides the annotation. Without either, the default applies (N-PT-1, N-PT-2)."""
    annotations = {} if annotation is None else {labels.POD_TERMINATION_POLICY: annotation}
    spec = {} if field is None else {"podTerminationPolicy": field}
    lws = builders.leaderworkerset_object(metadata={"annotations": annotations}, spec=spec)
    assert termination.is_parallel(lws, WORKERS) == is_parallel
    assert (reconcile(group(lws, LEADER, changed(WORKERS, **PARALLEL))) == Plan(DELETED)) == is_parallel


def test_running_leader_keeps_its_workers() -> None:
    assert termination.delete_workers(group(LWS, builders.leader_pod(LWS))) == NOTHING


def test_foreground_deletion_is_left_to_the_garbage_collector() -> None:
    foreground = changed(LEADER, finalizers=["foregroundDeletion"])
    assert reconcile(group(LWS, foreground)) == Plan()
    other = changed(LEADER, finalizers=["example.com/other"])
    assert reconcile(group(LWS, other)) == Plan(DELETED)


def test_terminating_and_foreign_workers_are_not_deleted() -> None:
    """Terminating and foreign workers are not deleted (N-PT-2)."""
    going = changed(WORKERS, deletionTimestamp="2026-03-01T11:59:59Z")
    of_another = builders.worker_statefulset(changed(LEADER, uid="another"))
    assert reconcile(group(LWS, LEADER, going)) == Plan()
    assert reconcile(group(LWS, LEADER, of_another)) == Plan()
    assert reconcile(LiveGroup(now=builders.NOW, leader=LEADER, obj=LWS)) == Plan()


def test_invalid_termination_value_is_rejected() -> None:
    """The rule for the field also applies to the annotation (N-VAL-7)."""
    key = labels.POD_TERMINATION_POLICY
    (error,) = termination.errors(builders.annotated({key: "Fast"}))
    assert str(error) == (f'metadata.annotations.{key}: Invalid value: "Fast": must be Default or Parallel')
    assert (
        list(termination.errors(builders.annotated({key: "Parallel"})))
        == list(termination.errors(builders.annotated({})))
        == []
    )
