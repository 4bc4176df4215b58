"""Which failures call for the recreation of a group."""

from typing import Any

import pytest
from tests import builders

from kuberuntime.objects import meta
from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.core.policies import failures
from leaderworkerset.core.policies.policy import LiveGroup

AFTER_START = {"restartPolicy": "RecreateGroupAfterStart"}
OBJECT = builders.leaderworkerset_object()
LEADER = builders.leader_pod(OBJECT)
SET = builders.worker_statefulset(LEADER)


def lws(**fields: Any) -> LeaderWorkerSet:
    return leaderworkerset.decode(builders.leaderworkerset_object(**fields))


def members(
    *workers: dict[str, Any],
    leader: dict[str, Any] = LEADER,
    gone: tuple[dict[str, Any], ...] = (),
    sets: tuple[dict[str, Any], ...] = (SET,),
) -> LiveGroup:
    return LiveGroup(now=builders.NOW, leader=leader, pods=(leader, *workers), gone=gone, statefulsets=sets)


@pytest.mark.parametrize(
    ("policy", "active"),
    [
        ("RecreateGroupOnPodRestart", True),
        ("RecreateGroupAfterStart", True),
        ("None", False),
        ("Default", False),
    ],
)
def test_only_two_policies_recreate(policy: str, *, active: bool) -> None:
    """R-POD-3."""
    found = lws(template={"restartPolicy": policy})
    failing = members(builders.worker_pod(LEADER, restarts=1))

    assert (failures.failed_pod(found, failing) is not None) is active


def test_the_policy_that_lives_decides_about_older_groups_and_failures() -> None:
    """Q-14, Q-18: a restart from the time of another policy counts as soon as the policy recreates."""
    failing = members(builders.worker_pod(LEADER, restarts=1))

    assert failures.failed_pod(lws(image="app:2", template={"restartPolicy": "None"}), failing) is None
    assert failures.failed_pod(lws(image="app:2"), failing) is not None


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
def test_deletion_and_restarted_containers_are_failures(pod: dict[str, Any], *, failed: bool) -> None:
    """R-POD-4."""
    assert failures.has_failed(pod) is failed


def test_a_worker_that_failed_is_found() -> None:
    """R-POD-5."""
    failed = builders.worker_pod(LEADER, restarts=1)

    assert failures.failed_pod(lws(), members(failed)) == failed
    assert failures.failed_pod(lws(), members(builders.worker_pod(LEADER))) is None


def test_a_leader_that_failed_is_found() -> None:
    """R-POD-5, Q-17."""
    leader = builders.leader_pod(OBJECT, restarts=1)

    assert failures.failed_pod(lws(), members(leader=leader)) == leader


def test_a_worker_that_is_gone_has_failed_whatever_it_was_like() -> None:
    """R-POD-11: deleted without grace, it may never have been seen terminating."""
    gone = builders.worker_pod(LEADER)

    assert failures.failed_pod(lws(), members(gone=(gone,))) == gone


ANOTHER = builders.leader_pod(OBJECT, uid="another")


@pytest.mark.parametrize(
    ("worker", "sets"),
    [
        (builders.worker_pod(ANOTHER, restarts=1), (SET,)),
        (builders.worker_pod(LEADER, restarts=1), ()),
        (builders.worker_pod(LEADER, restarts=1), (builders.worker_statefulset(LEADER, uid="recreated"),)),
        (builders.worker_pod(LEADER, restarts=1), (builders.worker_statefulset(ANOTHER, uid=meta.uid(SET)),)),
        (builders.worker_pod(builders.leader_pod(OBJECT, key="old"), restarts=1), (SET,)),
        (builders.worker_pod(builders.leader_pod(OBJECT, 1), restarts=1), (SET,)),
        (builders.pod("x", labels_={}, annotations={}, owner=SET, ready=True, uid="u", restarts=1), (SET,)),
    ],
    ids=["other set", "set gone", "set recreated", "other leader", "other revision", "other group", "no ordinal"],
)
def test_a_worker_of_an_earlier_leader_does_not_count(worker: dict[str, Any], sets: tuple[dict[str, Any]]) -> None:
    """N-AT-17, R-POD-8, R-POD-10."""
    assert failures.failed_pod(lws(), members(worker, sets=sets)) is None


def test_a_worker_of_another_revision_counts_while_its_group_is_updated_in_place() -> None:
    """R-POD-5: the pods of such a group get the new revision one after the other (docs/adr/0024-update-in-place.md)."""
    marked = builders.leader_pod(OBJECT, annotations={labels.IN_PLACE_REVISION: "new"})
    gone = builders.worker_pod(builders.leader_pod(OBJECT, key="new"))

    assert failures.failed_pod(lws(), members(leader=marked, gone=(gone,))) == gone
    assert failures.failed_pod(lws(), members(leader=builders.leader_pod(OBJECT), gone=(gone,))) is None


def owned_by(worker: dict[str, Any], owner: dict[str, Any] | None) -> dict[str, Any]:
    references = [] if owner is None else [meta.controller_reference(owner)]
    return worker | {"metadata": worker["metadata"] | {"ownerReferences": references}}


def test_a_worker_owned_by_the_leader_itself_counts() -> None:
    """R-POD-8a."""
    failed = builders.worker_pod(LEADER, restarts=1)

    assert failures.failed_pod(lws(), members(owned_by(failed, LEADER), sets=())) is not None
    assert failures.failed_pod(lws(), members(owned_by(failed, ANOTHER), sets=())) is None
    assert failures.failed_pod(lws(), members(owned_by(failed, None))) is None
    assert failures.failed_pod(lws(), members(owned_by(failed, SET | {"kind": "ReplicaSet"}))) is None


WAITING = [
    {"template": AFTER_START},
    {"metadata": {"annotations": {labels.RECREATE_GROUP_AFTER_START: "false"}}},
]


@pytest.mark.parametrize("fields", WAITING, ids=["policy", "annotation"])
def test_failures_of_a_group_that_has_not_started_do_not_count(fields: dict[str, Any]) -> None:
    """R-POD-5.2, Q-19: the annotation's value does not matter."""
    found = lws(size=3, **fields)
    failed, pending = builders.worker_pod(LEADER, restarts=1), builders.worker_pod(LEADER, 2, phase="Pending")

    assert failures.failed_pod(found, members(failed, pending)) is None
    assert failures.failed_pod(found, members(failed)) is None
    assert failures.failed_pod(found, members(failed, builders.worker_pod(LEADER, 2))) == failed


def test_a_pod_that_is_gone_counts_as_it_was_and_not_as_its_successor() -> None:
    """N-MGR-1, R-POD-5.1, R-POD-11: its successor is pending, the group was not."""
    gone = builders.worker_pod(LEADER, uid="first", deleting=True)
    successor = builders.worker_pod(LEADER, uid="second", phase="Pending")

    assert failures.failed_pod(lws(template=AFTER_START), members(successor, gone=(gone,))) == gone


def test_pending_pods_do_not_matter_to_the_other_policy() -> None:
    """R-POD-5.2."""
    failed = builders.worker_pod(LEADER, phase="Pending", init_restarts=1)

    assert failures.failed_pod(lws(size=9), members(failed)) == failed
