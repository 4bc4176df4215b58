"""Tests how the state of a group is derived."""

from typing import Any

import pytest
from tests import builders

from kuberuntime.objects import meta
from kuberuntime.objects.meta import UID, JSONObject
from leaderworkerset.api import groupname, labels
from leaderworkerset.core.leaderworkerset import groupstate
from leaderworkerset.core.leaderworkerset.groupstate import GroupFacts, Workers

LWS = builders.leaderworkerset_object()


def test_group_is_described_by_leader_and_worker_statefulset() -> None:
    """The state of a group is derived from its leader and its worker StatefulSet (R-STAT-5, R-STAT-6)."""
    leader = builders.leader_pod(LWS, 1, key="k", extra_labels={labels.STATEFULSET_REVISION: "web-5"})

    assert groupstate.describe(leader, builders.worker_statefulset(leader)) == GroupFacts(
        leader="web-1",
        group_index="1",
        index=1,
        is_leader_ready=True,
        revision="k",
        workers=Workers(is_ready=True, revision="k", group_index="1"),
        uid=UID("uid-of-web-1"),
        is_deleting=False,
        statefulset_revision="web-5",
    )
    assert groupstate.describe(leader, None).workers is None


@pytest.mark.parametrize(("text", "expected"), [("3", 3), ("1", 1), ("", 0), ("x", 0), ("\u0663", 0), ("9" * 4301, 0)])
def test_leader_has_the_size_of_its_creation(text: str, expected: int) -> None:
    """The annotation contains the group size (R-ADM-1)."""
    leader = builders.leader_pod(builders.leaderworkerset_object(), annotations={labels.SIZE: text})

    assert groupstate.describe(leader, None).original_size == groupstate.original_size(leader) == expected


def test_differs_from_upstream_workers_of_old_leader_are_ignored() -> None:
    """Ready workers of a previous leader do not make a group ready (unlike R-STAT-6).

    These workers exist until the garbage collector deletes them.
    """
    earlier, leader = builders.leader_pod(LWS, uid="earlier"), builders.leader_pod(LWS)

    assert groupstate.describe(leader, builders.worker_statefulset(earlier)).workers is None
    assert groupstate.describe(earlier, builders.worker_statefulset(earlier)).workers is not None


@pytest.mark.parametrize(
    "leader", [builders.leader_pod(LWS), builders.hash_leader(builders.hash_object())], ids=["ordinal", "hash"]
)
def test_workers_belong_to_the_group_by_owner_or_selector(leader: JSONObject) -> None:
    """After an orphaning deletion, the StatefulSet has no controller, but its selector matches the group."""
    own = builders.worker_statefulset(leader)
    named = own | {"metadata": own["metadata"] | {"name": groupname.hostname(leader)}}
    alone = named | {"metadata": named["metadata"] | {"ownerReferences": []}}
    thing = {"kind": "Thing", "name": "other", "uid": "u", "controller": True}
    candidates = {
        "own": own,
        "orphan": alone | {"spec": {"selector": {"matchLabels": groupname.group_labels(leader)}}},
        "of another selector": alone | {"spec": {"selector": {"matchLabels": {"app": "other"}}}},
        "of another owner": named | {"metadata": named["metadata"] | {"ownerReferences": [thing]}},
    }

    assert [name for name, obj in candidates.items() if groupname.find_workers(leader, [obj])] == ["own", "orphan"]


@pytest.mark.parametrize("label", ["", "x", "-1", "1.5", "²"])
def test_index_that_is_not_a_number_is_ignored(label: str) -> None:
    """A non-numeric index is ignored (R-STAT-5, Q-22)."""
    leader = builders.leader_pod(LWS, extra_labels={"leaderworkerset.sigs.k8s.io/group-index": label})

    assert groupstate.describe(leader, None).index is None


@pytest.mark.parametrize(
    ("phase", "ready", "expected"), [("Running", True, True), ("Running", False, False), ("Pending", True, False)]
)
def test_leader_is_ready_when_running_and_ready(phase: str, *, ready: bool, expected: bool) -> None:
    """A leader is ready if its pod is running and ready (R-STAT-6, R-ROLL-8)."""
    assert groupstate.is_pod_ready(builders.leader_pod(LWS, phase=phase, ready=ready)) is expected


@pytest.mark.parametrize(
    ("spec", "status", "expected"),
    [
        ({"replicas": 2}, {"availableReplicas": 2, "currentRevision": "a", "updateRevision": "a"}, True),
        ({"replicas": 2}, {"availableReplicas": 1, "currentRevision": "a", "updateRevision": "a"}, False),
        ({"replicas": 2}, {"availableReplicas": 2, "currentRevision": "a", "updateRevision": "b"}, False),
        ({"replicas": 0}, {}, True),
        ({}, {"availableReplicas": 1}, True),
    ],
)
def test_statefulset_is_ready_when_all_pods_have_one_revision(
    spec: dict[str, Any], status: dict[str, Any], *, expected: bool
) -> None:
    """A StatefulSet is ready if all of its pods have the same revision (R-ROLL-9)."""
    assert groupstate.is_statefulset_ready({"spec": spec, "status": status}) is expected


def test_statefulset_of_a_different_owner_is_ignored() -> None:
    """`meet-1` exists, and `meet` is scaled to two groups.

    The workers of its group 1 are not created (docs/adr/0030).
    """
    leader = builders.leader_pod(LWS, 1)
    other = builders.leaderworkerset_object("web-1", metadata={"uid": "other"})
    owner = builders.as_applied(builders.worker_statefulset(leader))
    foreign = owner | {"metadata": owner["metadata"] | {"ownerReferences": [meta.controller_reference(other)]}}

    assert groupname.find_workers(leader, [foreign]) is None
    assert groupstate.describe(leader, foreign).workers is None
