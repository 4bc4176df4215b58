"""Tests the writes during a rollout, the deletion of old revisions, and the events for both."""

from typing import Any

import pytest
from msgspec import structs
from tests import builders
from tests.decisions import decide, reconcile
from tests.unit.leaderworkerset.core.leaderworkerset.test_reconcile import (
    KEY,
    LWS,
    REGARDING,
    at_rest,
    desired,
    kinds,
    live,
    reads,
    ready_groups,
    replace,
    settled,
)

from kuberuntime.objects import meta
from kuberuntime.objects.meta import UID, ObjectKey
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, PODS
from kuberuntime.plan import (
    AggregatedNote,
    Apply,
    Concurrently,
    Create,
    Delete,
    Emit,
    Event,
    Finally,
    Patch,
    Plan,
    PutStatus,
    guarded_patch,
)
from leaderworkerset.api import labels
from leaderworkerset.capabilities.history import revisionhistory
from leaderworkerset.core.leaderworkerset.decision import ObservedLeaderWorkerSet
from leaderworkerset.core.leaderworkerset.groupstate import GroupFacts
from leaderworkerset.core.leaderworkerset.outline import Read
from leaderworkerset.core.policies.policy import HeadlessService


@pytest.mark.parametrize(
    ("before", "unavailable", "note"), [(2, 1, "Updating replica 1"), (2, 2, "Updating replicas 0 to 1 (inclusive)")]
)
def test_released_groups_are_reported(before: int, unavailable: int, note: str) -> None:
    """Released groups are reported (R-LSTS-7)."""
    obj = builders.leaderworkerset_object(rollout={"maxUnavailable": unavailable})
    observed = replace(
        at_rest(obj), leader_workload=live(obj, partition=before), groups=ready_groups(obj, 2, key="old")
    )

    apply = next(action for action in reconcile(observed, builders.NOW).actions if isinstance(action, Apply))

    assert apply.on_success == (Event("Normal", "GroupsUpdating", "Update", note, REGARDING),)


def test_differs_from_upstream_raised_partition_has_no_event() -> None:
    """If the partition increases, no event is created.

    The Go controller reports "Updating replicas 2 to -1 (inclusive)" (Q-10).
    """
    obj = builders.leaderworkerset_object(rollout={"partition": 2})
    observed = replace(at_rest(obj), leader_workload=live(obj, partition=0))

    apply = next(action for action in reconcile(observed, builders.NOW).actions if isinstance(action, Apply))

    assert apply.object["spec"]["updateStrategy"]["rollingUpdate"]["partition"] == 2
    assert apply.on_success == ()


def test_unchanged_partition_reports_no_groups() -> None:
    """If the partition is unchanged, no groups are reported (R-LSTS-7)."""
    grown = builders.leaderworkerset_object(replicas=3)

    apply = next(a for a in reconcile(replace(at_rest(), leaderworkerset=grown), builders.NOW).actions)

    assert isinstance(apply, Apply)
    assert apply.on_success == ()


@pytest.mark.parametrize(
    ("before", "note"), [(3, "deleting surge replica web-2"), (5, "deleting surge replicas from web-2 to web-4")]
)
def test_surge_groups_are_reported_before_their_deletion(before: int, note: str) -> None:
    """Surge groups are reported before their deletion (R-ROLL-3)."""
    observed = replace(at_rest(), leader_workload=live(LWS, partition=1, replicas=before))

    told, applied, *_ = reconcile(observed, builders.NOW).actions

    assert told == Emit(events=(Event("Normal", "GroupsProgressing", "Delete", note, REGARDING),))
    assert isinstance(applied, Apply)


def test_outdated_revisions_are_retired_after_an_update() -> None:
    """Outdated revisions are deleted after an update (R-REV-14, R-STAT-9)."""
    old = builders.revision(builders.leaderworkerset_object(image="app:0"), number=7)
    record = builders.revision(LWS) | {"metadata": {"name": "web-0-recreations", "labels": {labels.NAME: "web"}}}
    observed = replace(at_rest(), revisions=[old, builders.revision(LWS, number=8), record])

    decision = decide(observed, builders.NOW)
    assert decision.plan.actions == tuple(revisionhistory.update_history(LWS, KEY, [old], ()))
    assert reads(observed) == {Read.HISTORY}


def test_history_is_truncated_after_it_was_read() -> None:
    obj = builders.leaderworkerset_object(metadata={"annotations": {labels.REVISION_HISTORY_LIMIT: "1"}})
    old, past = (builders.revision(builders.leaderworkerset_object(image=f"app:0.{n}"), number=n) for n in (7, 6))
    observed = replace(at_rest(obj), revisions=[old, builders.revision(obj, number=8)])
    observed = structs.replace(observed, known=structs.replace(observed.known, history=[past]))

    decision = decide(observed, builders.NOW)

    assert kinds(decision.plan) == [Patch, Delete]
    assert reads(observed) == set()


def test_reused_revision_gets_the_next_number() -> None:
    edited = builders.leaderworkerset_object(image="app:2")
    old, new = builders.revision(LWS, number=1), builders.revision(edited, number=2)
    observed = replace(at_rest(), leader_workload=live(edited), revisions=[old, new])

    first = reconcile(observed, builders.NOW).actions[0]

    assert first == Patch(resource=CONTROLLER_REVISIONS, key=meta.key(old), patch=guarded(old, {"revision": 3}))


def test_change_cause_is_recorded_with_the_revision() -> None:
    obj = builders.leaderworkerset_object(metadata={"annotations": {labels.CHANGE_CAUSE: "new weights"}})
    created = reconcile(ObservedLeaderWorkerSet(leaderworkerset=obj), builders.NOW).actions[0]
    assert isinstance(created, Create)
    assert meta.annotations(created.object) == {labels.CHANGE_CAUSE: "new weights"}


def test_later_change_cause_is_added_once() -> None:
    obj = builders.leaderworkerset_object(metadata={"annotations": {labels.CHANGE_CAUSE: "new weights"}})
    plain = builders.revision(LWS)
    before = replace(at_rest(obj), revisions=[plain])

    patch = {"metadata": {"annotations": {labels.CHANGE_CAUSE: "new weights"}}}
    expected = Patch(resource=CONTROLLER_REVISIONS, key=meta.key(plain), patch=guarded(plain, patch))
    assert reconcile(before, builders.NOW).actions == (expected,)
    assert reconcile(at_rest(obj), builders.NOW) == Plan()


def guarded(seen: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    return guarded_patch(CONTROLLER_REVISIONS, seen, change).patch


def test_outdated_revisions_are_kept_below_a_partition() -> None:
    """Below a partition, outdated revisions are retained (R-STAT-17)."""
    obj = builders.leaderworkerset_object(rollout={"partition": 1})
    old = builders.revision(builders.leaderworkerset_object(image="app:0"), number=7)
    observed = replace(at_rest(obj), leader_workload=live(obj, partition=1))
    observed = replace(observed, revisions=[old, builders.revision(obj, number=8)])

    assert not {Delete, Patch} & set(kinds(reconcile(observed, builders.NOW)))


def rolling(
    groups_: dict[str, GroupFacts], *, partition: int = 2, generation: int = 0, **status_: Any
) -> ObservedLeaderWorkerSet:
    """Return four groups during a rollout from `older` to LWS, on a cluster that drops maxUnavailable."""
    obj = builders.leaderworkerset_object(replicas=4, rollout={"maxUnavailable": 2})
    built = desired(obj, partition=partition, replicas=4)
    built["metadata"]["generation"] = generation
    built["spec"]["updateStrategy"]["rollingUpdate"].pop("maxUnavailable")
    seen = {"replicas": 4, "observedGeneration": 0, "updateRevision": "web-new"} | status_
    observed = ObservedLeaderWorkerSet(
        leaderworkerset=obj,
        leader_workload=builders.as_applied(built, status=seen),
        revisions=[builders.revision(obj)],
        service=builders.SETTLED,
        groups=groups_,
    )
    return replace(observed, leaderworkerset=settled(obj, observed), leader_workload=observed.leader_workload)


def test_outdated_leaders_are_deleted_within_the_budget() -> None:
    """Some leaders at a time are deleted by UID in the foreground (R-ROLL-1, docs/adr/0004-max-unavailable.md)."""
    plan = reconcile(rolling(ready_groups(LWS, 4, key="older")), builders.NOW)

    assert plan == Plan((Concurrently(sequences=tuple((deletion_of(index),) for index in (3, 2))),))


@pytest.mark.parametrize("has_service", [True, False])
def test_status_is_written_before_leaders_are_deleted(has_service: bool) -> None:
    """Deletions of many leaders need time, and continue even if the status is rejected (R-STAT-3)."""
    observed = rolling(ready_groups(LWS, 4, key="older"))
    obj = observed.leaderworkerset or {}
    behind = replace(observed, leaderworkerset=obj | {"status": {}}, service=HeadlessService(is_settled=has_service))

    (first,) = reconcile(behind, builders.NOW).actions

    assert isinstance(first, Finally)
    assert [type(one) for one in first.actions] == ([] if has_service else [Create]) + [PutStatus]
    assert first.after == reconcile(observed, builders.NOW).actions


def deletion_of(index: int) -> Delete:
    return Delete(
        resource=PODS,
        key=ObjectKey("default", f"web-{index}"),
        propagation="Foreground",
        uid=UID(f"uid-of-web-{index}"),
        on_success=(
            Event(
                "Normal",
                "GroupsUpdating",
                "Delete",
                f"Deleted leader pod web-{index} to update group {index}",
                {
                    "apiVersion": "leaderworkerset.x-k8s.io/v1",
                    "kind": "LeaderWorkerSet",
                    "namespace": "default",
                    "name": "web",
                    "uid": "uid-of-web",
                    "resourceVersion": "1",
                },
                of_many=AggregatedNote("Deleted leader pods to update groups {numbers}", index),
            ),
        ),
    )


@pytest.mark.parametrize(("held", "expected"), [(4, {Read.LEADERS}), (3, set())], ids=["the first", "the second"])
def test_first_step_of_an_update_needs_known_leaders(held: int, expected: set[Read]) -> None:
    """Leaders that the previous update released may still be terminating (docs/adr/0010-bounds.md)."""
    observed = rolling(ready_groups(LWS, 4, key="older"), partition=held)

    decision = decide(observed, builders.NOW)

    assert kinds(decision.plan) == [Apply]
    assert reads(observed) == expected


def test_no_leader_is_deleted_when_the_partition_moves() -> None:
    """At that time, the StatefulSet controller has not observed the new partition (R-ARC-4)."""
    observed = rolling(ready_groups(LWS, 4, key="older"), partition=4)

    assert kinds(reconcile(observed, builders.NOW)) == [Apply]


def test_leaders_are_kept_without_a_statefulset_controller() -> None:
    """A leader is not deleted if no controller would recreate it (docs/adr/0004-max-unavailable.md)."""
    observed = rolling(ready_groups(LWS, 4, key="older"), observedGeneration=7)

    assert reconcile(observed, builders.NOW) == Plan()


def test_next_step_waits_for_the_statefulset_controller() -> None:
    """The replacement of released groups may have started without being observed (docs/adr/0010-bounds.md)."""
    observed = rolling(ready_groups(LWS, 4, key="older"), partition=4, generation=2, observedGeneration=1)
    assert kinds(reconcile(observed, builders.NOW)) == []

    observed = rolling(ready_groups(LWS, 4, key="older"), partition=4, generation=2, observedGeneration=2)
    assert kinds(reconcile(observed, builders.NOW)) == [Apply]
