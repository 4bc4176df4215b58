"""Tests that a reconcile visits only the relevant groups, regardless of the size of the LeaderWorkerSet."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests import builders, decisions

from kuberuntime.objects import meta
from kuberuntime.plan import Apply, Delete, Plan, flatten
from leaderworkerset.api import labels
from leaderworkerset.core.leaderworkerset.decision import ObservedLeaderWorkerSet, PreviousResults
from leaderworkerset.core.leaderworkerset.groupindex import index_groups
from leaderworkerset.core.leaderworkerset.groupstate import GroupFacts, Workers


class Counted(dict[str, GroupFacts]):
    """A list of groups that counts the visited groups."""

    __slots__ = ()
    visits = 0

    def values(self) -> Any:
        type(self).visits += len(self)
        return super().values()


def rolling(count: int, updated: int, *, honors_max_unavailable: bool) -> ObservedLeaderWorkerSet:
    """Return a rollout that replaces one group at a time, with the last groups already updated."""
    before = builders.leaderworkerset_object(replicas=count)
    obj = builders.leaderworkerset_object(replicas=count, image="app:2")
    key, partition = builders.key_of(obj), count - updated
    revisions = (builders.revision(before), builders.revision(obj, number=2))
    groups = [_group(index, key if index >= partition else builders.key_of(before)) for index in range(count)]
    observed = ObservedLeaderWorkerSet(leaderworkerset=obj, revisions=revisions, service=builders.SETTLED)
    live = builders.as_applied(_applied(replace(observed, leader_workload=_set(key, count, partition, obj))))
    if not honors_max_unavailable:
        del live["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"]
    return replace(
        observed,
        leader_workload=live,
        groups=Counted(builders.by_leader(groups)),
        group_summary=index_groups(groups, "web"),
    )


def _group(index: int, key: str) -> GroupFacts:
    workers = Workers(is_ready=True, revision=key, group_index=str(index))
    return GroupFacts(f"web-{index}", str(index), index, is_leader_ready=True, revision=key, workers=workers)


def _set(key: str, count: int, partition: int, obj: dict[str, Any]) -> dict[str, Any]:
    owner = meta.controller_reference(obj)
    return {
        "metadata": {
            "name": "web",
            "namespace": builders.NAMESPACE,
            "labels": {labels.NAME: "web", labels.TEMPLATE_REVISION_HASH: key},
            "annotations": {labels.REPLICAS: str(count)},
            "ownerReferences": [owner],
        },
        "spec": {"replicas": count, "updateStrategy": {"rollingUpdate": {"partition": partition}}},
    }


def _applied(observed: ObservedLeaderWorkerSet) -> dict[str, Any]:
    """Return the leader StatefulSet that the first reconcile applies."""
    found: dict[str, Any] = decisions.reconcile(observed, builders.NOW).actions[0].object  # type: ignore[union-attr]
    return found


@pytest.mark.parametrize("honors", [True, False])
@pytest.mark.parametrize("count", [50, 100, 200])
def test_rollout_step_visits_no_group(count: int, *, honors: bool) -> None:
    """Previously, each step visited each group three times (150, 300 and 600), so the cost was quadratic."""
    observed = rolling(count, count // 2, honors_max_unavailable=honors)
    Counted.visits = 0

    plan = decisions.reconcile(observed, builders.NOW)

    assert plan.error is None
    assert plan.actions
    assert Counted.visits == 0
    assert plan == decisions.reconcile(replace(observed, group_summary=None), builders.NOW)
    assert Counted.visits == count


@pytest.mark.parametrize("count", [50, 100, 200])
def test_step_visits_no_group_while_a_leader_terminates(count: int) -> None:
    """Previously, each group was visited while the outdated leader was above the partition."""
    observed = with_outdated(rolling(count, count // 2, honors_max_unavailable=False), count - 1, is_deleting=True)
    Counted.visits = 0

    plan = decisions.reconcile(observed, builders.NOW)

    assert plan.error is None
    assert deleted(plan) == []
    assert Counted.visits == 0


@pytest.mark.parametrize("count", [50, 100, 200])
def test_step_visits_only_the_groups_that_it_replaces(count: int) -> None:
    at_work = rolling(count, count // 2, honors_max_unavailable=False)
    observed = with_outdated(at_work, count - 1, is_deleting=False)
    Counted.visits = 0

    plan = decisions.reconcile(observed, builders.NOW)

    assert deleted(plan) == [f"web-{count - 1}"]
    assert Counted.visits == 0
    decisions.reconcile(replace(observed, group_summary=None), builders.NOW)
    assert Counted.visits == count


def with_outdated(observed: ObservedLeaderWorkerSet, index: int, *, is_deleting: bool) -> ObservedLeaderWorkerSet:
    """Return the observation with one outdated leader above the partition, and the desired partition."""
    groups = list(observed.groups.values())
    groups[index] = replace(groups[0], leader=f"web-{index}", group_index=str(index), index=index)
    groups[index] = replace(groups[index], is_deleting=is_deleting)
    status = {"observedGeneration": 1, "updateRevision": "web-new"}
    statefulset = {**(observed.leader_workload or {}), "status": status}
    statefulset["metadata"] = {**statefulset["metadata"], "generation": 1}
    found = replace(
        observed,
        leader_workload=statefulset,
        groups=Counted(builders.by_leader(groups)),
        group_summary=index_groups(groups, "web"),
    )
    applied = [one for one in decisions.reconcile(found, builders.NOW).actions if isinstance(one, Apply)]
    if not applied:
        return found
    moved = builders.as_applied(applied[0].object) | {"status": status}
    del moved["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"]
    moved["metadata"]["generation"] = 1
    return replace(
        found,
        leader_workload=moved,
        known=PreviousResults(applied=builders.applied(observed.leaderworkerset or {}, moved)),
    )


def deleted(plan: Plan) -> list[str]:
    """Return the names of the objects that the plan deletes."""
    return [action.key.name for action in flatten(plan.actions) if isinstance(action, Delete)]
