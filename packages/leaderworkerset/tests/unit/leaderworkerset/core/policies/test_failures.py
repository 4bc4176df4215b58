"""Tests the failures that cause the recreation of a group."""

from typing import Any

import pytest
from testkit import objects
from tests import builders

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.core.policies import failures
from leaderworkerset.core.policies.policy import LiveGroup

AFTER_START = {"restartPolicy": "RecreateGroupAfterStart"}
OBJECT = builders.leaderworkerset_object()
LEADER = builders.leader_pod(OBJECT)
SET = builders.worker_statefulset(LEADER)


def first_failed(lws: LeaderWorkerSet, group: LiveGroup) -> JSONObject | None:
    return next(iter(failures.failed_pods(lws, group)), None)


def lws(**fields: Any) -> LeaderWorkerSet:
    return leaderworkerset.decode(builders.leaderworkerset_object(**fields))


def members(
    *workers: dict[str, Any],
    leader: dict[str, Any] = LEADER,
    gone: tuple[dict[str, Any], ...] = (),
    sets: tuple[dict[str, Any], ...] = (SET,),
) -> LiveGroup:
    return builders.live_group(leader=leader, pods=(leader, *workers), gone=gone, statefulsets=sets)


@pytest.mark.parametrize(
    ("policy", "active"),
    [
        ("RecreateGroupOnPodRestart", True),
        ("RecreateGroupAfterStart", True),
        ("None", False),
        ("Default", False),
    ],
)
def test_two_restart_policies_recreate(policy: str, *, active: bool) -> None:
    """Two restart policies recreate groups (R-POD-3)."""
    found = lws(template={"restartPolicy": policy})
    failing = members(builders.worker_pod(LEADER, restarts=1))

    assert (first_failed(found, failing) is not None) is active


def test_current_policy_applies_to_older_groups_and_failures() -> None:
    """A restart under another policy counts as soon as the policy recreates groups (Q-14, Q-18)."""
    failing = members(builders.worker_pod(LEADER, restarts=1))

    assert first_failed(lws(image="app:2", template={"restartPolicy": "None"}), failing) is None
    assert first_failed(lws(image="app:2"), failing) is not None


@pytest.mark.parametrize(
    ("pod", "failed"),
    [
        (builders.worker_pod(LEADER), False),
        (builders.worker_pod(LEADER, deleting=True), True),
        (builders.worker_pod(LEADER, deleting=True, phase="Failed"), True),
        (builders.worker_pod(LEADER, restarts=1), True),
        (builders.worker_pod(LEADER, restarts=1, phase="Pending"), True),
        (builders.worker_pod(LEADER, init_restarts=2), True),
        (builders.worker_pod(LEADER, restarts=1, phase="Failed"), False),
        (builders.worker_pod(LEADER, restarts=1, phase="Succeeded"), False),
        (builders.worker_pod(LEADER, restarts=1, phase="Unknown"), False),
        ({"metadata": {}, "status": {"phase": "Running"}}, False),
    ],
)
def test_deletion_and_container_restarts_are_failures(pod: dict[str, Any], *, failed: bool) -> None:
    """Deletion and container restarts are failures (R-POD-4)."""
    assert failures.has_failed(pod) is failed


def test_failed_worker_is_detected() -> None:
    """A failed worker is detected (R-POD-5)."""
    failed = builders.worker_pod(LEADER, restarts=1)

    assert first_failed(lws(), members(failed)) == failed
    assert first_failed(lws(), members(builders.worker_pod(LEADER))) is None


def test_failed_leader_is_detected() -> None:
    """A failed leader is detected (R-POD-5, Q-17)."""
    leader = builders.leader_pod(OBJECT, restarts=1)

    assert first_failed(lws(), members(leader=leader)) == leader


def test_deleted_worker_has_failed_in_any_state() -> None:
    """A pod that is deleted without a grace period may never be observed terminating (R-POD-11)."""
    gone = builders.worker_pod(LEADER)

    assert first_failed(lws(), members(gone=(gone,))) == gone


ANOTHER = builders.leader_pod(OBJECT, uid="another")
OWNED = {"ownerReferences": [meta.controller_reference(SET)]}


@pytest.mark.parametrize(
    ("worker", "sets"),
    [
        (builders.worker_pod(ANOTHER, restarts=1), (SET,)),
        (builders.worker_pod(LEADER, restarts=1), ()),
        (builders.worker_pod(LEADER, restarts=1), (builders.worker_statefulset(LEADER, uid="recreated"),)),
        (builders.worker_pod(LEADER, restarts=1), (builders.worker_statefulset(ANOTHER, uid=meta.uid(SET)),)),
        (builders.worker_pod(builders.leader_pod(OBJECT, key="old"), restarts=1), (SET,)),
        (builders.worker_pod(builders.leader_pod(OBJECT, 1), restarts=1), (SET,)),
        (objects.pod("x", metadata=OWNED, containerStatuses=[{"name": "main", "restartCount": 1}]), (SET,)),
    ],
    ids=["other set", "set gone", "set recreated", "other leader", "other revision", "other group", "no ordinal"],
)
def test_worker_of_an_earlier_leader_is_ignored(worker: dict[str, Any], sets: tuple[dict[str, Any]]) -> None:
    """A worker of an earlier leader is ignored (N-AT-17, R-POD-8, R-POD-10)."""
    assert first_failed(lws(), members(worker, sets=sets)) is None


def test_worker_of_a_different_revision_counts_during_an_update() -> None:
    """The pods of such a group receive the new revision in sequence (R-POD-5, docs/adr/0024)."""
    marked = builders.leader_pod(OBJECT, annotations={labels.IN_PLACE_REVISION: "new"})
    gone = builders.worker_pod(builders.leader_pod(OBJECT, key="new"))

    assert first_failed(lws(), members(leader=marked, gone=(gone,))) == gone
    assert first_failed(lws(), members(leader=builders.leader_pod(OBJECT), gone=(gone,))) is None


def owned_by(worker: dict[str, Any], owner: dict[str, Any] | None) -> dict[str, Any]:
    references = [] if owner is None else [meta.controller_reference(owner)]
    return worker | {"metadata": worker["metadata"] | {"ownerReferences": references}}


def test_worker_owned_by_the_leader_itself_counts() -> None:
    """A worker that the leader itself owns is counted (R-POD-8a)."""
    failed = builders.worker_pod(LEADER, restarts=1)

    assert first_failed(lws(), members(owned_by(failed, LEADER), sets=())) is not None
    assert first_failed(lws(), members(owned_by(failed, ANOTHER), sets=())) is None
    assert first_failed(lws(), members(owned_by(failed, None))) is None
    assert first_failed(lws(), members(owned_by(failed, SET | {"kind": "ReplicaSet"}))) is None


WAITING = [
    {"template": AFTER_START},
    {"metadata": {"annotations": {labels.RECREATE_GROUP_AFTER_START: "false"}}},
]


@pytest.mark.parametrize("fields", WAITING, ids=["policy", "annotation"])
def test_failures_before_the_group_has_started_are_ignored(fields: dict[str, Any]) -> None:
    """The value of the annotation is ignored (R-POD-5.2, Q-19)."""
    found = lws(size=3, **fields)
    failed, pending = builders.worker_pod(LEADER, restarts=1), builders.worker_pod(LEADER, 2, phase="Pending")

    assert first_failed(found, members(failed, pending)) is None
    assert first_failed(found, members(failed)) is None
    assert first_failed(found, members(failed, builders.worker_pod(LEADER, 2))) == failed


def test_deleted_pod_counts_in_its_last_state() -> None:
    """The replacement of the deleted pod is pending, but the group was not (N-MGR-1, R-POD-5.1, R-POD-11)."""
    gone = builders.worker_pod(LEADER, uid="first", deleting=True)
    successor = builders.worker_pod(LEADER, uid="second", phase="Pending")

    assert first_failed(lws(template=AFTER_START), members(successor, gone=(gone,))) == gone


def test_pending_pods_are_ignored_by_the_default_policy() -> None:
    """The default policy ignores pending pods (R-POD-5.2)."""
    failed = builders.worker_pod(LEADER, phase="Pending", init_restarts=1)

    assert first_failed(lws(size=9), members(failed)) == failed
