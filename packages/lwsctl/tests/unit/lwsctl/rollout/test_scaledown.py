"""Tests which groups are deleted by scaling down, and which unready groups remain."""

from typing import Any

from tests import builders

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from lwsctl.model.leaderworkerset import View, view
from lwsctl.rollout import scaledown
from lwsctl.rollout.scaledown import ScaleDown

EXHAUSTED = {labels.GROUP_RESTART_BUDGET_EXHAUSTED: "true"}


def groups(replicas: int, *unready: int, going: tuple[int, ...] = (), exhausted: tuple[int, ...] = ()) -> View:
    """Return groups of one pod with indexes."""
    lws = builders.leaderworkerset_object(size=1, replicas=replicas)
    leaders = [
        builders.leader_pod(
            lws, index, ready=index not in unready, deleting=index in going,
            annotations=EXHAUSTED if index in exhausted else {},
        )
        for index in range(replicas)
    ]  # fmt: skip
    return view(lws, leaders)


def keyed(*ready: bool) -> View:
    """Return groups of one pod with random keys `00000000`, `11111111` and so on."""
    lws = builders.hash_object(size=1, replicas=len(ready))
    leaders: list[JSONObject] = []
    for number, is_ready in enumerate(ready):
        own: dict[str, Any] = {"ready": is_ready, "extra_labels": {labels.GROUP_INDEX: str(number) * 40}}
        leaders.append(builders.leader_pod(lws, number, annotations={labels.GROUP_IDENTITY: "Hash"}, **own))
    return view(lws, leaders)


def told(name: str, found: ScaleDown) -> list[str]:
    return list(scaledown.lines(name, found))


def test_highest_indexes_are_deleted_and_unready_ones_may_stay() -> None:
    """The highest indexes are deleted, and unready groups may remain (R-ARC-2)."""
    found = scaledown.forecast(groups(5, 1, 4), 3)
    assert found == ScaleDown(deleted=(3, 4), unready_deleted=(4,), unready_remaining=(1,))
    assert told("web", found) == [
        "web: group 4 is deleted (not ready)",
        "web: group 3 is deleted although ready, because groups with an index are deleted in descending order",
        "web: group 1 remains (not ready)",
    ]


def test_terminating_and_missing_groups_are_not_counted() -> None:
    found = scaledown.forecast(groups(4, 3, going=(3,)), 2)
    assert found == ScaleDown(deleted=(2,), unready_deleted=())
    assert scaledown.forecast(view(builders.leaderworkerset_object(), ()), 0) == ScaleDown(
        deleted=(), unready_deleted=()
    )


def test_exhausted_groups_are_listed_separately() -> None:
    """Only a user can recreate exhausted groups (N-RB-4)."""
    found = scaledown.forecast(groups(4, 0, 1, going=(0,), exhausted=(0,)), 2)
    assert found == ScaleDown(deleted=(2, 3), unready_deleted=(), unready_remaining=(1,), exhausted_remaining=(0,))
    assert told("web", found) == [
        "web: groups 2-3 are deleted although ready, because groups with an index are deleted in descending order",
        "web: group 1 remains (not ready)",
        "web: group 0 remains (not ready, and not recreated)",
    ]


def test_unready_groups_with_random_keys_are_deleted_first() -> None:
    """Unready groups with random keys are deleted first (N-HASH-6)."""
    found = scaledown.forecast(keyed(True, False, True, True), 2)
    assert found == ScaleDown(deleted=("11111111",), unready_deleted=("11111111",), other_count=1)
    assert told("keyed", found) == [
        "keyed: group 11111111 is deleted (not ready)",
        "keyed: 1 ready group is deleted",
    ]
    assert told("keyed", scaledown.forecast(keyed(True, True, True), 1)) == ["keyed: 2 ready groups are deleted"]


def test_choice_among_unready_groups_is_left_to_kubernetes() -> None:
    """Kubernetes selects among unready groups (N-HASH-6)."""
    found = scaledown.forecast(keyed(False, False, True), 2)
    assert found.other_count == -1
    (line,) = told("keyed", found)
    assert line.startswith("keyed: 1 of groups ")
    assert line.endswith(" is deleted, because Kubernetes deletes unready groups first")
