"""Tests that names of Workloads and PodGroups equal the Go controller's names and are within their limits."""

import pytest
from tests import builders

from kuberuntime.objects.meta import UID, JSONObject
from leaderworkerset.api import labels
from leaderworkerset.core.policies import workloadnames
from leaderworkerset.core.policies.levels import SchedulingLevel

LWS = builders.leaderworkerset_object()
KEY = builders.key_of(LWS)
LEADER = builders.leader_pod(LWS, 1)


@pytest.mark.parametrize(
    ("uid", "suffix"),
    [
        ("11111111-2222-3333-4444-555555555555", "68d7549f75"),
        ("b7a0c7a2-3f6e-4a0e-9d2b-0d6a2a1f9c11", "86bcd65f74"),
    ],
)
def test_workload_name_derives_from_the_uid(uid: str, suffix: str) -> None:
    """A Workload name is derived from the UID (N-K8S-3: the vectors of the contract)."""
    assert workloadnames.build_workload_name("web", UID(uid)) == f"web-{suffix}"
    assert workloadnames.build_workload_name("w" * 253, UID(uid)) == f"{'w' * 242}-{suffix}"


@pytest.mark.parametrize(
    ("level", "role", "workload", "expected"),
    [
        (SchedulingLevel.WHOLE, "leader", "web-h", "web-h-lws"),
        (SchedulingLevel.WHOLE, "worker", "web-h.bcdfg", "web-h-lws"),
        (SchedulingLevel.REPLICA, "leader", "web-h", f"web-h-1-{KEY}"),
        (SchedulingLevel.REPLICA, "worker", "web-h.bcdfg", f"web-h.bcdfg-1-{KEY}"),
        (SchedulingLevel.ROLE, "leader", "web-h", f"web-h-1-leader-{KEY}"),
        (SchedulingLevel.ROLE, "worker", "web-h.bcdfg", f"web-h.bcdfg-1-worker-{KEY}"),
        (SchedulingLevel.REPLICA, "leader", "web", f"web-1-{KEY}"),
    ],
)
def test_pod_group_name_derives_from_its_workload(
    level: SchedulingLevel, role: str, workload: str, expected: str
) -> None:
    """A pod of an older version has no Workload reference, but the LeaderWorkerSet's name (N-K8S-4, N-ADM-8)."""
    assert workloadnames.group_name(LEADER, workload, level, role) == expected


def test_missing_labels_leave_their_part_empty() -> None:
    """If a label is missing, its part of the name is empty (N-ADM-8)."""
    bare: JSONObject = {"metadata": {}}

    assert workloadnames.group_name(bare, "web-h", SchedulingLevel.REPLICA, "") == "web-h--"


def test_long_set_name_is_truncated_and_the_suffix_kept() -> None:
    """The hash of the UID, the index and the revision are retained (N-K8S-4)."""
    name = workloadnames.group_name(LEADER, f"{'w' * 242}-68d7549f75.bcdfg", SchedulingLevel.ROLE, "worker")

    assert len(name) == 253
    assert name.endswith(f"w-68d7549f75.bcdfg-1-worker-{KEY}")


def test_incarnation_differs_per_admission_and_is_recognized() -> None:
    """The incarnation differs for each admission, and is recognized (N-ADM-9, N-K8S-12)."""
    first, second = (workloadnames.with_incarnation("web-h", request) for request in ("r1", "r2"))

    assert first != second
    assert workloadnames.is_incarnated(first)
    assert workloadnames.pod_group_prefix(first, "web-h") == first
    assert not any(map(workloadnames.is_incarnated, ["web-h", "web-h.bcdf", "web-h.aeiou", "bcdfg"]))


@pytest.mark.parametrize("annotated", ["", "web-h", "other", "other-h.bcdfg", "web-h.AAAAA"])
def test_annotation_of_a_different_workload_is_not_accepted(annotated: str) -> None:
    """The annotation of another Workload is rejected (N-K8S-12)."""
    assert workloadnames.pod_group_prefix(annotated, "web-h") == "web-h"


def test_pod_group_of_workers_is_used_by_their_leader() -> None:
    """The PodGroup is created before the workers are created (N-K8S-13)."""
    own = {labels.ROLE: labels.WORKER, labels.TEMPLATE_REVISION_HASH: "rev"}
    workers: JSONObject = {"metadata": {"name": "web-h.bcdfg-1-worker-rev", "labels": own}}
    leader: JSONObject = {"metadata": {"name": "web-h.bcdfg-1-leader-rev", "labels": {labels.ROLE: labels.LEADER}}}

    assert workloadnames.dependent_pod_groups(workers) == ("web-h.bcdfg-1-worker-rev", "web-h.bcdfg-1-leader-rev")
    assert workloadnames.dependent_pod_groups(leader) == ("web-h.bcdfg-1-leader-rev",)
