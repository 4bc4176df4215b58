"""Tests that groups are moved within the rollout budget, and that no group is moved twice (docs/adr/0023)."""

from typing import Any

import pytest
from tests import builders
from tests.decisions import decide
from tests.unit.leaderworkerset.core.leaderworkerset.test_reconcile import reads

from kuberuntime.objects import meta
from kuberuntime.plan import Apply, Delete, PutStatus, flatten
from leaderworkerset.api import leaderworkerset
from leaderworkerset.capabilities import names
from leaderworkerset.core.leaderworkerset import budget, groupstate, statefulsets
from leaderworkerset.core.leaderworkerset.decision import Decision, ObservedLeaderWorkerSet, PreviousResults
from leaderworkerset.core.leaderworkerset.outline import Read
from leaderworkerset.core.leaderworkerset.rollingupdate import RolloutCase, RolloutStep

ROLLED = {"currentRevision": "web-1", "updateRevision": "web-1", "observedGeneration": 1}


def lws(replicas: int = 4, **rolling: Any) -> dict[str, Any]:
    made = builders.leaderworkerset_object()
    strategy = {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxUnavailable": 1, "maxSurge": 0} | rolling}
    return made | {"spec": made["spec"] | {"replicas": replicas, "rolloutStrategy": strategy}}


def reported(decision: Decision) -> list[tuple[str, str, str]]:
    """Return the status, reason and message of the condition in the written status."""
    writes = [one for one in flatten(decision.plan.actions) if isinstance(one, PutStatus)]
    conditions = [one for write in writes for one in meta.status(write.object)["conditions"]]
    return [(one["status"], one["reason"], one["message"]) for one in conditions if one["type"] == "MoveInProgress"]


def decided(obj: dict[str, Any], leaving: str, **changes: Any) -> Decision:
    """Run the decision for the groups of `observe`."""
    return decide(observe(obj, leaving, **changes), builders.NOW)


def observe(
    obj: dict[str, Any], leaving: str, *, unready: str = "", ending: str = "", count: int = 4, made_of: str = "web-1"
) -> ObservedLeaderWorkerSet:
    """Return `count` groups. Each string contains the indexes of groups."""
    typed = leaderworkerset.decode(obj)
    desired = statefulsets.build(
        obj,
        typed,
        key=builders.key_of(obj),
        limits=budget.read(typed.spec),
        step=RolloutStep(RolloutCase.ROLLING, 0, count),
    )
    living = builders.as_applied(desired, status=ROLLED | {"replicas": count})
    living["metadata"]["generation"] = 1
    groups = []
    for index in range(count):
        leader = builders.leader_pod(obj, index, ready=str(index) not in unready)
        leader["metadata"]["labels"]["controller-revision-hash"] = made_of
        if str(index) in ending:
            leader["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        groups.append(groupstate.describe(leader, builders.worker_statefulset(leader)))
    return ObservedLeaderWorkerSet(
        leaderworkerset=obj,
        leader_workload=living,
        revisions=[builders.revision(obj)],
        service=builders.SETTLED,
        groups=builders.by_leader(groups),
        known=PreviousResults(applied=builders.applied(obj, living) if count == typed.spec.replicas else None),
        facts={names.MOVES: {f"web-{index}": {"node-7"} for index in leaving}},
    )


def moved(decision: Decision) -> list[str]:
    """Return the deleted leaders."""
    return [one.key.name for one in flatten(decision.plan.actions) if isinstance(one, Delete)]


@pytest.mark.parametrize(
    ("leaving", "changes", "expected"),
    [
        ("", {}, []),
        ("13", {}, ["web-3"]),
        ("13", {"ending": "3"}, []),
        ("13", {"unready": "0"}, []),
        ("13", {"unready": "1"}, ["web-1"]),
        ("13", {"made_of": "web-0"}, []),
        ("79", {}, []),
    ],
    ids=["none", "the highest", "one is away", "one failed", "a broken one", "in a rollout", "groups that are gone"],
)
def test_one_group_moves_while_all_others_are_available(
    leaving: str, changes: dict[str, Any], expected: list[str]
) -> None:
    assert moved(decided(lws(), leaving, **changes)) == expected


def test_moves_are_limited_by_unavailable_groups() -> None:
    assert moved(decided(lws(maxUnavailable=2), "013")) == ["web-3", "web-1"]
    assert moved(decided(lws(maxUnavailable=2), "013", unready="2")) == ["web-3"]


def test_move_names_the_node_and_needs_fresh_leaders() -> None:
    decision = decided(lws(), "3")

    (deletion,) = [one for one in flatten(decision.plan.actions) if isinstance(one, Delete)]
    (event,) = deletion.on_success
    assert (event.reason, event.note) == ("MovingGroup", "Deleted leader pod web-3 to move its group from node-7")
    assert deletion.propagation == "Foreground"
    assert deletion.uid
    assert reads(observe(lws(), "3")) == {Read.LEADERS}
    assert reads(observe(lws(), "3", unready="2")) == frozenset()


def test_condition_names_nodes_until_no_group_must_leave() -> None:
    """The condition does not exist until the first group must be moved from a node (ADR 23)."""
    assert reported(decided(lws(), "")) == []
    assert reported(decided(lws(), "13")) == [("True", "GroupsMoving", "Groups must be moved from their nodes: node-7")]
    (write,) = [one for one in flatten(decided(lws(), "13").plan.actions) if isinstance(one, PutStatus)]
    assert [(event.reason, event.note) for event in write.on_success] == [
        ("GroupsMoving", "Groups must be moved from their nodes: node-7")
    ]
    after = lws() | {"status": meta.status(write.object)}
    assert [one for one in flatten(decided(after, "13").plan.actions) if isinstance(one, PutStatus)] == []
    assert reported(decided(after, "")) == [("False", "AsExpected", "No groups need to be moved from their nodes")]


def test_terminating_groups_do_not_have_to_move() -> None:
    assert reported(decided(lws(), "3", ending="3")) == []
    assert reported(decided(lws(), "79")) == []


def test_surge_group_is_created_before_a_move() -> None:
    obj = lws(maxUnavailable=0, maxSurge=1)
    (applied,) = [one for one in flatten(decided(obj, "13").plan.actions) if isinstance(one, Apply)]

    assert (meta.spec(applied.object)["replicas"], moved(decided(obj, "13"))) == (5, [])


def hashed(leaving: str, *, unready: str = "", **status: Any) -> list[str]:
    """Run the decision for three groups with random keys. Return the deleted leaders."""
    obj = builders.hash_object()
    obj = obj | {"spec": obj["spec"] | {"replicas": 3}}
    leaders = [builders.hash_leader(obj, letter, ready=letter not in unready) for letter in "abc"]
    groups = [groupstate.describe(leader, builders.worker_statefulset(leader)) for leader in leaders]
    first = ObservedLeaderWorkerSet(
        leaderworkerset=obj,
        revisions=[builders.revision(obj)],
        service=builders.SETTLED,
        groups=builders.by_leader(groups),
    )
    (made,) = [one for one in flatten(decide(first, builders.NOW).plan.actions) if isinstance(one, Apply)]
    living = builders.as_applied(made.object, status={"replicas": 3, "observedGeneration": 1} | status)
    living["metadata"]["generation"] = 1
    names = [meta.name(leader) for leader in leaders if meta.name(leader)[-1] in leaving]
    observed = ObservedLeaderWorkerSet(
        leaderworkerset=obj,
        leader_workload=living,
        revisions=[builders.revision(obj)],
        service=builders.SETTLED,
        groups=builders.by_leader(groups),
        known=PreviousResults(applied=builders.applied(obj, living)),
        facts={"moves": {name: {"node-7"} for name in names}},
    )
    return [name[-1] for name in moved(decide(observed, builders.NOW))]


def test_groups_with_random_keys_move_within_the_same_budget() -> None:
    assert hashed("") == []
    assert hashed("ab") == ["a"]
    assert hashed("ab", unready="c") == []
    assert hashed("ab", unready="b") == ["b"]
    assert hashed("ab", observedGeneration=0) == []
