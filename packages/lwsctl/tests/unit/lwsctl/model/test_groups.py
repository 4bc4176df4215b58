"""Tests that pods are grouped by group and rank, and that missing pods have a reason."""

from typing import Any

import pytest
from tests.builders import rank_pod

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from lwsctl.model import leaderworkerset as sets


def lws(replicas: int = 2, size: int = 2, **spec: Any) -> JSONObject:
    return {
        "metadata": {"name": "web", "namespace": "default", "generation": 1},
        "spec": {"replicas": replicas, "leaderWorkerTemplate": {"size": size}, **spec},
        "status": {"readyReplicas": 1, "updatedReplicas": 2, "observedGeneration": 1},
    }


def states(view: sets.View) -> list[tuple[str, str, bool]]:
    return [(rank.place, rank.state, rank.is_ready) for group in view.groups for rank in group.ranks]


def test_every_place_is_shown_with_or_without_a_pod() -> None:
    view = sets.view(lws(), [rank_pod(0, 0), rank_pod(0, 1), rank_pod(1, 0, ready=False)])
    assert states(view) == [
        ("0/0", "Running", True),
        ("0/1", "Running", True),
        ("1/0", "Running", False),
        ("1/1", "Missing", False),
    ]
    assert [group.is_ready for group in view.groups] == [True, False]
    assert (view.ready, view.desired, view.up_to_date) == (1, 2, 2)


def test_missing_worker_waits_for_its_leader() -> None:
    view = sets.view(lws(1, startupPolicy="LeaderReady"), [rank_pod(0, 0, ready=False)])
    assert "waits for the leader to be ready" in view.groups[0].ranks[1].why


def test_surge_group_is_shown() -> None:
    view = sets.view(lws(1), [rank_pod(0, 0), rank_pod(0, 1), rank_pod(1, 0)])
    assert [group.index for group in view.groups] == [0, 1]


def test_number_of_groups_without_pods_is_limited() -> None:
    view = sets.view(lws(1_000_000, size=4), [rank_pod(7, 0), rank_pod(900_000, 0), rank_pod(1_000_001, 0)])
    assert (len(view.groups), view.more) == (2_503, 1_000_000 - 2_502)
    assert [group.index for group in view.groups][-3:] == [2_500, 900_000, 1_000_001]
    assert not view.is_ready
    huge = sets.view(lws(3, size=20_000), [])
    assert ([group.index for group in huge.groups], huge.more) == ([0], 2)


def test_group_keeps_the_size_of_its_creation() -> None:
    view = sets.view(lws(1, size=4), [rank_pod(0, 0), rank_pod(0, 1)])
    assert len(view.groups[0].ranks) == 2


def test_pods_without_a_place_are_omitted() -> None:
    stranger = {"metadata": {"name": "x", "labels": {labels.GROUP_INDEX: "zero"}}}
    assert sets.view(lws(0), [stranger]).groups == ()


def test_deleted_pod_is_not_ready() -> None:
    view = sets.view(lws(1, 1), [rank_pod(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})])
    assert states(view) == [("0/0", "Terminating", False), ("0/1", "Missing", False)]


def test_set_is_ready_when_its_newest_spec_is_available() -> None:
    given = lws(1)
    given["status"]["conditions"] = [{"type": "Available", "status": "True"}]
    pods = [rank_pod(0, 0), rank_pod(0, 1)]
    assert sets.view(given, pods).is_ready
    assert sets.view(given, [*pods, rank_pod(1, 0, ready=False)]).is_ready, "a surge group does not count"
    assert not sets.view(given, [rank_pod(0, 0), rank_pod(0, 1, ready=False)]).is_ready, "the status is behind the pods"
    given["metadata"]["generation"] = 2
    assert not sets.view(given, pods).is_ready


def test_stub_is_marked() -> None:
    stub = rank_pod(0, 0)
    stub["status"]["containerStatuses"] = [{"name": "main", "imageID": "stub://vllm"}]
    assert sets.view(lws(1, 1), [stub]).groups[0].ranks[0].is_stub


@pytest.mark.parametrize("text", ["20000", str(2**31 - 1)])
def test_claimed_group_size_is_bounded(text: str) -> None:
    (group,) = sets.view(lws(1), [rank_pod(0, 0, metadata={"annotations": {labels.SIZE: text}})]).groups
    assert len(group.ranks) == sets.LISTED
    assert not group.is_ready
