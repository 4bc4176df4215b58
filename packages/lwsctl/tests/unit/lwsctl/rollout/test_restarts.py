"""Tests the order in which groups are restarted."""

from typing import Any

import pytest
from tests import builders

from leaderworkerset.api import leaderworkerset
from lwsctl.model.leaderworkerset import View, view
from lwsctl.rollout import restarts


def groups(*, uids: str, unready: tuple[int, ...] = (), going: tuple[int, ...] = ()) -> View:
    """Return groups whose leaders have these single-letter UIDs."""
    lws = builders.leaderworkerset_object(size=1, replicas=len(uids))
    leaders: list[dict[str, Any]] = []
    for index, uid in enumerate(uids):
        leader = builders.leader_pod(lws, index, uid=uid, ready=index not in unready)
        leader["metadata"] |= {"deletionTimestamp": "2026-03-01T12:00:00Z"} if index in going else {}
        leaders.append(leader)
    return view(lws, leaders)


def pods(turn: restarts.RestartStep) -> list[str]:
    return [rank.pod for rank in turn.ranks]


def test_highest_groups_restart_first_within_the_budget() -> None:
    shown = groups(uids="abcd")
    old = restarts.pods_to_delete(shown, range(4))
    assert old == {0: "a", 1: "b", 2: "c", 3: "d"}
    turn = restarts.next_batch(shown, old, 2)
    assert (pods(turn), turn.unready_groups) == (["web-3", "web-2"], (0, 1, 2, 3))


def test_unavailable_group_uses_the_budget() -> None:
    shown = groups(uids="abcd", going=(3,), unready=(3,))
    turn = restarts.next_batch(shown, {2: "c", 3: "d"}, 1)
    assert (pods(turn), turn.unready_groups) == ([], (2, 3))


def test_starting_successor_uses_the_budget() -> None:
    turn = restarts.next_batch(groups(uids="abcX", unready=(3,)), {3: "d"}, 1)
    assert (pods(turn), turn.unready_groups) == ([], (3,))


def test_next_group_restarts_when_the_successor_is_ready() -> None:
    turn = restarts.next_batch(groups(uids="abcX"), {2: "c", 3: "d"}, 1)
    assert (pods(turn), turn.unready_groups) == (["web-2"], (2,))


def test_unready_groups_restart_at_no_cost() -> None:
    turn = restarts.next_batch(groups(uids="abcd", unready=(0, 1)), {0: "a", 1: "b", 2: "c"}, 1)
    assert pods(turn) == ["web-1", "web-0"]


def test_restart_completes_when_all_groups_are_ready() -> None:
    assert restarts.next_batch(groups(uids="XY"), {0: "a", 1: "b"}, 1) == restarts.RestartStep((), ())


def test_group_without_a_pod_has_nothing_to_restart() -> None:
    lws = builders.leaderworkerset_object(size=1, replicas=2)
    shown = view(lws, [builders.leader_pod(lws, 0, uid="a")])
    assert restarts.pods_to_delete(shown, [0, 1]) == {0: "a"}
    assert restarts.pods_to_delete(shown, [0], rank=3) == {}
    assert restarts.next_batch(shown, {1: "b"}, 1).unready_groups == (1,)


def test_groups_that_are_not_listed_use_the_budget() -> None:
    lws = builders.leaderworkerset_object(size=1, replicas=50_000)
    shown = view(lws, [builders.leader_pod(lws, 0, uid="a")])
    assert shown.more
    assert pods(restarts.next_batch(shown, {0: "a"}, 40_000)) == []
    assert pods(restarts.next_batch(shown, {0: "a"}, 50_000)) == ["web-0"]


@pytest.mark.parametrize(
    ("policy", "phase", "taken"),
    [
        ("RecreateGroupOnPodRestart", "Running", True),
        ("RecreateGroupOnPodRestart", "Pending", True),
        ("RecreateGroupAfterStart", "Running", True),
        ("RecreateGroupAfterStart", "Pending", False),
        ("None", "Running", False),
    ],
)
@pytest.mark.parametrize("complete", [True, False])
def test_restart_of_a_rank_recreates_its_group_by_policy(
    policy: str, phase: str, *, taken: bool, complete: bool
) -> None:
    lws = builders.leaderworkerset_object(size=2, replicas=1, template={"restartPolicy": policy})
    leader = builders.leader_pod(lws, 0)
    worker = builders.worker_pod(leader)
    worker["status"]["phase"] = phase
    (group,) = view(lws, [leader, worker] if complete else [worker]).groups
    expected = taken and (complete or policy != "RecreateGroupAfterStart")
    assert restarts.recreates_group(leaderworkerset.decode(lws), group) is expected
