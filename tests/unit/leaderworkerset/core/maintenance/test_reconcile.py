"""Which groups are moved now (ADR 23): no more are away than the rollout allows, and none moves without need."""

from typing import Any

import pytest
from tests import builders

from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Delete
from leaderworkerset.api import labels
from leaderworkerset.core.maintenance.movesettings import MoveSettings
from leaderworkerset.core.maintenance.reconcile import MovableGroup, ObservedMoves, reconcile

ON = MoveSettings(moves=True)


def lws(replicas: int = 3, unavailable: int | str = 1, **metadata: Any) -> JSONObject:
    """Return a LeaderWorkerSet with groups of two pods."""
    rolling = {"rollingUpdateConfiguration": {"maxUnavailable": unavailable, "maxSurge": 0}}
    spec = {"rolloutStrategy": {"type": "RollingUpdate"} | rolling}
    found = builders.leaderworkerset_object(replicas=replicas, size=2, spec=spec)
    found["metadata"] |= metadata
    return found


def group(label: str, *off: str, ready: bool = True, pods: int = 2, **metadata: Any) -> MovableGroup:
    """Return a group of two pods; `off` are the nodes it must leave."""
    own = {labels.NAME: "web", labels.GROUP_INDEX: label, labels.WORKER_INDEX: "0"}
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": str(ready)}]}
    fields = {"name": f"web-{label}", "namespace": "default", "uid": f"uid-{label}", "labels": own} | metadata
    workers = {"metadata": {"name": f"web-{label}"}, "spec": {"replicas": 1}, "status": {"availableReplicas": 1}}
    leader = {"apiVersion": "v1", "kind": "Pod", "metadata": fields, "status": status}
    return MovableGroup(leader=leader, workers=workers, pods=pods, off=off)


def moved(obj: JSONObject, *groups: MovableGroup, settings: MoveSettings = ON) -> list[str]:
    """Return the leaders that are deleted, in order."""
    found = reconcile(ObservedMoves(obj=obj, groups=groups), settings).actions
    assert all(isinstance(one, Delete) for one in found)
    return [one.key.name for one in found if isinstance(one, Delete)]


def test_one_group_moves_at_a_time_the_lowest_first() -> None:
    assert moved(lws(), group("2", "n"), group("10", "n"), group("1", "n")) == ["web-1"]
    assert moved(lws(unavailable=2), group("2", "n"), group("10", "n"), group("1", "n")) == ["web-1", "web-2"]


@pytest.mark.parametrize(
    "other",
    [
        (group("1", ready=False),),
        (group("1", pods=1),),
        (group("1", deletionTimestamp="2026-01-01T00:00:00Z"),),
        (),
    ],
)
def test_a_group_that_is_away_for_any_reason_counts(other: tuple[MovableGroup, ...]) -> None:
    """It fails, lost a pod, is on its way out, or has no leader yet."""
    assert moved(lws(), group("0", "n"), *other, group("2")) == []


def test_a_group_that_is_away_itself_moves_without_a_further_place() -> None:
    assert moved(lws(), group("0", "n"), group("1", "n", ready=False), group("2")) == ["web-1"]


def test_a_move_is_one_deletion_of_this_leader_that_names_all_nodes_once() -> None:
    (found,) = reconcile(ObservedMoves(obj=lws(1), groups=[group("0", "a", "b")]), ON).actions
    assert isinstance(found, Delete)
    assert (found.uid, found.propagation) == ("uid-0", "Foreground")
    assert [(one.reason, one.note) for one in found.on_success] == [
        ("MovingGroup", "Deleted leader pod web-0 to move its group off a, b")
    ]


def test_groups_elsewhere_those_on_their_way_out_and_those_given_up_are_not_moved() -> None:
    over: dict[str, Any] = {"annotations": {labels.GROUP_RESTART_BUDGET_EXHAUSTED: "true"}}
    going: dict[str, Any] = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert moved(lws(unavailable=3), group("0"), group("1", "n", **going), group("2", "n", **over)) == []


def test_a_rollout_goes_first() -> None:
    obj = lws() | {"status": {"conditions": [{"type": "UpdateInProgress", "status": "True"}]}}
    assert moved(obj, group("0", "n"), group("1"), group("2")) == []


def test_a_template_that_names_a_node_would_be_moved_for_ever() -> None:
    obj = lws()
    obj["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["nodeName"] = "n"
    assert moved(obj, group("0", "n"), group("1"), group("2")) == []


@pytest.mark.parametrize(
    "obj",
    [
        lws(annotations={labels.MOVE_GROUPS: "false"}),
        lws(deletionTimestamp="2026-01-01T00:00:00Z"),
        lws(unavailable="many"),
    ],
)
def test_nothing_moves_where_it_is_off_or_cannot_be_decided(obj: JSONObject) -> None:
    assert moved(obj, group("0", "n"), group("1"), group("2")) == []


def test_off_is_the_default() -> None:
    assert moved(lws(), group("0", "n"), group("1"), group("2"), settings=MoveSettings()) == []
