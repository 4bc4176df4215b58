"""The workers that were deleted while no manager ran, by the last status."""

from typing import Any

import pytest
from tests import builders

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.core.restarts import unseen

WHOLE = "2026-03-01T12:00:00Z"
LONG_AFTER = "2026-03-01T12:01:01Z"
WITHIN_SKEW = "2026-03-01T12:01:00Z"


def left(**status: Any) -> JSONObject:
    """Return a LeaderWorkerSet with the status of a manager."""
    available = {"type": "Available", "status": "True", "lastTransitionTime": WHOLE}
    return builders.leaderworkerset_object(
        status={"replicas": 2, "readyReplicas": 2, "conditions": [available]} | status
    )


@pytest.mark.parametrize(
    ("lws", "since"),
    [
        (left(), WHOLE),
        (left(readyReplicas=1), ""),
        (left(conditions=[{"type": "Available", "status": "False", "lastTransitionTime": WHOLE}]), ""),
        (left(conditions=[{"type": "Available", "status": "True"}]), ""),
        (left(conditions=None), ""),
    ],
    ids=["available", "a surge group is not ready", "not available", "undated", "no condition"],
)
def test_status_has_the_time_since_all_groups_are_complete(lws: JSONObject, since: str) -> None:
    assert unseen.whole_since(lws) == since


@pytest.mark.parametrize(("index", "extra"), [(1, False), (2, True)])
def test_surge_group_may_be_new(index: int, *, extra: bool) -> None:
    """Moves and rollouts with a surge delete workers while the set is available."""
    obj = builders.leaderworkerset_object(replicas=2)
    assert unseen.may_be_new(obj, builders.leader_pod(obj, index)) is extra


def lost(whole: str = WHOLE, *, made: str = "2026-03-01T11:00:00Z", born: dict[int, str] | None = None) -> list[str]:
    """Return the deleted workers of three; `born` are the existing workers."""
    leader = builders.leader_pod(builders.leaderworkerset_object(size=4))
    statefulset = builders.worker_statefulset(leader)
    statefulset["metadata"]["creationTimestamp"] = made
    statefulset["spec"] = {"replicas": 3}
    workers = [builders.worker_pod(leader, index) for index in born or {}]
    for worker, moment in zip(workers, (born or {}).values(), strict=True):
        worker["metadata"]["creationTimestamp"] = moment
    return [meta.name(one) for one in unseen.lost(whole, statefulset, [leader, *workers])]


def test_missing_or_younger_worker_replaces_a_deleted_one() -> None:
    assert lost(born={1: made_before(), 2: LONG_AFTER}) == ["web-0-2", "web-0-3"]


def test_creation_times_within_clock_skew_are_not_replacements() -> None:
    assert lost(born={1: made_before(), 2: WHOLE, 3: WITHIN_SKEW}) == []


@pytest.mark.parametrize(("whole", "made"), [("", "2026-03-01T11:00:00Z"), (WHOLE, WHOLE), (WHOLE, LONG_AFTER)])
def test_incomplete_groups_have_no_deleted_workers(whole: str, made: str) -> None:
    assert lost(whole, made=made) == []


def made_before() -> str:
    return "2026-03-01T11:00:01Z"
