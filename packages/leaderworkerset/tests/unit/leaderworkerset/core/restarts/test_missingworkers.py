"""Tests which workers were deleted while no manager was running, based on the last status."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests import builders

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.core.restarts import missingworkers

WHOLE = "2026-03-01T12:00:00Z"
BEFORE = "2026-03-01T11:00:01Z"
LONG_AFTER = "2026-03-01T12:01:01Z"
WITHIN_SKEW = "2026-03-01T12:01:00Z"


def left(**status: Any) -> JSONObject:
    """Return a LeaderWorkerSet with a status that a manager wrote."""
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
    assert missingworkers.complete_since(lws) == since


@pytest.mark.parametrize(("index", "extra"), [(1, False), (2, True)])
def test_surge_group_may_be_new(index: int, *, extra: bool) -> None:
    """Moves and rollouts with a surge delete workers while the set is Available."""
    obj = builders.leaderworkerset_object(replicas=2)
    assert missingworkers.may_be_new(obj, builders.leader_pod(obj, index)) is extra


CLOCK = missingworkers.CompletionTime(WHOLE, WITHIN_SKEW)
SOON = "2026-03-01T12:00:02Z"
WRITTEN = missingworkers.CompletionTime(WHOLE, SOON)


def lost(
    moment: missingworkers.CompletionTime = CLOCK,
    *,
    made: str = "2026-03-01T11:00:00Z",
    born: dict[int, str] | None = None,
) -> list[str]:
    """Return the deleted workers of a group with three workers. `born` contains the existing workers."""
    leader, statefulset = group(0, made)
    statefulset["spec"] = {"replicas": 3}
    workers = [builders.worker_pod(leader, index) for index in born or {}]
    for worker, created in zip(workers, (born or {}).values(), strict=True):
        worker["metadata"]["creationTimestamp"] = created
    return [meta.name(one) for one in missingworkers.deleted_workers(moment, statefulset, [leader, *workers])]


def group(index: int, made: str, size: int = 4) -> tuple[JSONObject, JSONObject]:
    """Return a leader and its worker StatefulSet, both with this age."""
    leader = builders.leader_pod(
        builders.leaderworkerset_object(size=size), index, annotations={labels.SIZE: str(size)}
    )
    statefulset = builders.worker_statefulset(leader)
    for obj in (leader, statefulset):
        obj["metadata"]["creationTimestamp"] = made
    return leader, statefulset


def test_missing_or_younger_worker_replaces_a_deleted_one() -> None:
    assert lost(born={1: BEFORE, 2: LONG_AFTER}) == ["web-0-2", "web-0-3"]


@pytest.mark.parametrize(("moment", "names"), [(CLOCK, []), (WRITTEN, ["web-0-3"])])
def test_worker_created_soon_is_judged_by_the_clock(moment: missingworkers.CompletionTime, names: list[str]) -> None:
    assert lost(moment, born={1: BEFORE, 2: WHOLE, 3: WITHIN_SKEW}) == names


@pytest.mark.parametrize("moment", [CLOCK, WRITTEN])
@pytest.mark.parametrize("made", [WHOLE, LONG_AFTER])
def test_incomplete_groups_have_no_deleted_workers(moment: missingworkers.CompletionTime, made: str) -> None:
    assert lost(moment, made=made) == []


def written(lws: JSONObject, *entries: JSONObject) -> missingworkers.LastStatus:
    """Return the last status of a LeaderWorkerSet with these `managedFields` entries."""
    lws["metadata"]["managedFields"] = list(entries)
    return missingworkers.last_status(lws)


def test_last_write_of_the_status_is_read() -> None:
    last = written(
        left(readyReplicas=1),
        {"time": LONG_AFTER},
        {"subresource": "status"},
        {"subresource": "status", "time": BEFORE},
        {"subresource": "status", "time": WHOLE},
        {"subresource": "scale", "time": LONG_AFTER},
    )
    assert last == missingworkers.LastStatus(groups=2, ready=1, complete_since="", written_at=WHOLE)
    assert written(left(readyReplicas=None)) == missingworkers.LastStatus(
        groups=2, ready=0, complete_since="", written_at=""
    )


def observed(
    index: int, *, workers: Sequence[str] = (WHOLE,), ready: bool = True, size: int = 2
) -> missingworkers.ObservedGroup:
    """Return a group that is older than the last status, with workers of these ages."""
    leader, statefulset = group(index, BEFORE, size)
    statefulset["spec"] = {"replicas": 1}
    pods = [builders.worker_pod(leader, 1) for _ in workers]
    for pod, created in zip(pods, workers, strict=True):
        pod["metadata"]["creationTimestamp"] = created
    for pod in (leader, *pods):
        pod["status"] = {"conditions": [{"type": "Ready", "status": str(ready)}]}
    return missingworkers.ObservedGroup(leader, statefulset if size > 1 else None, [leader, *pods])


def lost_groups(ready: int, *groups: missingworkers.ObservedGroup) -> list[str]:
    """Return the leaders of groups that lost workers after a status with `ready` ready groups."""
    moments = missingworkers.completion_times(
        missingworkers.LastStatus(groups=0, ready=ready, complete_since="", written_at=WHOLE), groups
    )
    return [
        meta.name(group.leader)
        for group in groups
        if group.statefulset
        and any(missingworkers.deleted_workers(moment, group.statefulset, group.pods) for moment in moments)
    ]


@pytest.mark.parametrize(
    ("ready", "other", "expected"),
    [
        (1, observed(1), []),
        (2, observed(1), []),
        (1, observed(1, workers=[]), []),
        (2, observed(1, workers=[]), ["web-1"]),
        (2, observed(1, workers=[SOON]), []),
        (2, observed(1, workers=[LONG_AFTER]), ["web-1"]),
        (2, observed(1, ready=False), []),
        (2, observed(1, workers=[], size=1), []),
        (2, observed(1, workers=[], size=2), ["web-1"]),
    ],
    ids=[
        "more ready now", "as before", "waits for its first worker", "worker is missing", "worker is hardly younger", "worker is younger",
        "not ready any more", "leader alone", "without workers",
    ],
)  # fmt: skip
def test_fewer_groups_as_before_than_ready_have_lost_workers(
    ready: int, other: missingworkers.ObservedGroup, expected: list[str]
) -> None:
    assert lost_groups(ready, observed(0), other) == expected


@pytest.mark.parametrize(
    ("ready", "expected"),
    [(0, []), (1, ["web-1"]), (2, ["web-0", "web-1"]), (3, ["web-0", "web-1", "web-2"])],
)
def test_only_as_many_groups_as_are_missing_lost_workers(ready: int, expected: list[str]) -> None:
    """A group with an older worker is first, and then the group with the oldest StatefulSet.

    The other groups may have just started.
    """
    groups = observed(0, workers=[LONG_AFTER]), observed(1), observed(2, workers=[LONG_AFTER])
    for seen, (created, workers) in zip(groups, (("10", 1), ("45", 2), ("30", 1)), strict=True):
        assert seen.statefulset is not None
        seen.statefulset["metadata"]["creationTimestamp"] = f"2026-03-01T11:{created}:00Z"
        seen.statefulset["spec"]["replicas"] = workers
    assert lost_groups(ready, *groups) == expected


def test_transition_and_last_write_are_two_moments() -> None:
    last = missingworkers.LastStatus(groups=0, ready=1, complete_since=WHOLE, written_at=LONG_AFTER)
    leaders = frozenset({meta.uid(observed(0).leader)})
    expected = [CLOCK, missingworkers.CompletionTime(LONG_AFTER, "2026-03-01T12:01:03Z", leaders)]
    assert missingworkers.completion_times(last, [observed(0, workers=[])]) == expected
    assert (
        missingworkers.completion_times(
            missingworkers.LastStatus(groups=0, ready=1, complete_since="", written_at=""), []
        )
        == []
    )


def test_statefulset_older_than_its_leader_shows_two_clocks() -> None:
    lost_one, other = observed(1, workers=[]), observed(0)
    assert other.statefulset is not None
    other.statefulset["metadata"]["creationTimestamp"] = "2026-03-01T11:00:00Z"
    assert (
        missingworkers.completion_times(
            missingworkers.LastStatus(groups=0, ready=2, complete_since="", written_at=WHOLE), [other, lost_one]
        )
        == []
    )


@pytest.mark.parametrize("text", ["soon", "2026-03-01", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "-"])
def test_times_that_cannot_be_read_show_nothing(text: str) -> None:
    assert (
        missingworkers.completion_times(
            missingworkers.LastStatus(groups=0, ready=2, complete_since=text, written_at=text), [observed(0)]
        )
        == []
    )


@pytest.mark.parametrize(
    ("created", "latest"), [(BEFORE, WHOLE), ("2026-03-01T11:00:02Z", "2026-03-01T12:00:01Z"), (LONG_AFTER, SOON)]
)
def test_first_workers_show_how_much_clocks_differ(created: str, latest: str) -> None:
    last = missingworkers.LastStatus(groups=0, ready=3, complete_since="", written_at=WHOLE)
    moments = missingworkers.completion_times(last, [observed(0, workers=[created]), observed(1, workers=[])])
    assert [(moment.at, moment.latest) for moment in moments] == [(WHOLE, latest)]
