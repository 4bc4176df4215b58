"""Tests which groups would be moved from nodes, their order, and which pods would remain."""

from datetime import timedelta

from testkit import objects
from tests import builders

from lwsctl.model.leaderworkerset import View, view
from lwsctl.rollout import drainforecast
from lwsctl.rollout.drainforecast import DrainForecast


def shown(*, unready: tuple[int, ...] = (), surge: int = 0, unavailable: int = 1) -> View:
    """Return four groups of one pod."""
    rolling = {"maxUnavailable": unavailable, "maxSurge": surge}
    strategy = {"type": "RollingUpdate", "rollingUpdateConfiguration": rolling}
    lws = builders.leaderworkerset_object(size=1, replicas=4, spec={"rolloutStrategy": strategy})
    return view(lws, [builders.leader_pod(lws, index, ready=index not in unready) for index in range(4)])


def on_node(found: View, *indexes: int) -> DrainForecast:
    return drainforecast.forecast_moves(found, [group for group in found.groups if group.index in indexes])


def test_highest_index_moves_first_after_unavailable_groups() -> None:
    assert on_node(shown(), 0, 2, 3).groups == (3, 2, 0)
    assert on_node(shown(unready=(0,)), 0, 2, 3).groups == (0, 3, 2)


def test_unavailable_limit_and_surge_set_the_parallelism() -> None:
    found = on_node(shown(surge=2, unavailable=0), 0, 1, 2)
    assert (found.max_concurrent, found.surge) == (2, 2)


def test_groups_with_random_keys_get_no_surge() -> None:
    lws = builders.hash_object()
    rolling = {"maxUnavailable": 1, "maxSurge": 2}
    lws["spec"] |= {"rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": rolling}}
    whole = view(lws, [builders.hash_leader(lws, letter) for letter in "ba"])
    found = drainforecast.forecast_moves(whole, whole.groups)
    assert (found.max_concurrent, found.surge, len(found.groups)) == (1, 0, 2)
    first = next(group for group in whole.groups if group.name == found.groups[0])
    assert first.ranks[0].pod.endswith("a")


def test_outlook_lists_moving_and_staying_groups() -> None:
    moves = DrainForecast(set_path="a/web", groups=(3, 1), max_concurrent=2, surge=1, duration=timedelta(seconds=90))
    stays = DrainForecast(
        set_path="b/llm", groups=("95e88034",), max_concurrent=1, surge=0, duration=None, obstacle="it may not"
    )
    assert list(drainforecast.lines([moves, stays])) == [
        "  a/web: groups 3, 1 would move, at most 2 at a time, 1 extra group first, about 90s",
        "  b/llm: group 95e88034 would remain, because it may not",
    ]


def test_staying_pods_are_counted_by_owner() -> None:
    owners = ({"kind": kind, "name": "x", "uid": "1", "controller": True} for kind in ("ReplicaSet", "DaemonSet"))
    pods = [objects.pod(metadata={"ownerReferences": [owner]}) for owner in owners]
    pods += [objects.pod(), objects.pod(metadata={"annotations": {drainforecast.MIRROR: "x"}})]
    assert drainforecast.describe_other_pods(pods) == (
        "2 pods that are not moved (`kubectl drain` evicts them), 1 pod of DaemonSets, 1 pod of the node itself"
    )
    assert drainforecast.describe_other_pods([]) == ""
