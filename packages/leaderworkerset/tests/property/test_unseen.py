"""Tests that groups with unobserved worker deletions are detected by timestamps, regardless of clocks."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from tests import builders

from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.core.restarts import missingworkers

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LARGEST = 4
"""The number of pods in a group."""
LATER = 3600.0
"""The time in seconds until the manager has restarted."""


@dataclass(frozen=True)
class Start:
    """The start times in seconds: of the leader, its StatefulSet and each worker, and until all are ready."""

    leader: float
    statefulset: float
    workers: list[float]
    ready: float

    @property
    def last_worker(self) -> float:
        """Return the creation time of the last worker."""
        return self.leader + self.statefulset + max(self.workers)


starts = st.builds(
    Start,
    leader=st.floats(0, 600),
    statefulset=st.floats(0, 30),
    workers=st.lists(st.floats(0, 120), min_size=1, max_size=LARGEST - 1),
    ready=st.floats(0, 60),
)


def stamp(seconds: float) -> str:
    """Return the timestamp of an object in the format of the API server."""
    return timestamps.render(NOON + timedelta(seconds=seconds))


def built(index: int, start: Start, behind: float) -> missingworkers.ObservedGroup:
    """Return a ready group. The clock of the manager's API server is slow by the given number of seconds."""
    size = 1 + len(start.workers)
    obj = builders.leaderworkerset_object(size=size)
    leader = builders.leader_pod(obj, index, annotations={labels.SIZE: str(size)})
    statefulset = builders.worker_statefulset(leader)
    statefulset["spec"] = {"replicas": len(start.workers)}
    born = start.leader + start.statefulset
    pods = [leader, *(builders.worker_pod(leader, number) for number in range(1, size))]
    for pod, created in zip(pods, [start.leader, *(born + after for after in start.workers)], strict=True):
        pod["metadata"]["creationTimestamp"] = stamp(created)
        pod["status"] = {"conditions": [{"type": "Ready", "status": "True"}]}
    statefulset["metadata"]["creationTimestamp"] = stamp(born - behind)
    return missingworkers.ObservedGroup(leader, statefulset, pods)


def found(
    groups: list[missingworkers.ObservedGroup], last: missingworkers.LastStatus, ending: Iterable[JSONObject] = ()
) -> list[str]:
    """Return the names of workers whose deletion was not observed."""
    moments = missingworkers.completion_times(last, groups, ending)
    return [
        meta.name(worker)
        for group in groups
        if group.statefulset is not None
        for moment in moments
        for worker in missingworkers.deleted_workers(moment, group.statefulset, group.pods)
    ]


def last_write(starting: list[Start], ready: int, behind: float) -> missingworkers.LastStatus:
    """Return the status that was written when the last group became ready."""
    at = max(start.last_worker + start.ready for start in starting)
    return missingworkers.LastStatus(groups=ready, ready=ready, complete_since="", written_at=stamp(at - behind))


@given(st.lists(starts, min_size=1, max_size=4), st.floats(-3600, 3600))
def test_groups_that_only_started_are_not_recreated(starting: list[Start], behind: float) -> None:
    """A slow clock is detected, because leaders wait for workers only as long as these need to start."""
    quick = [
        Start(start.leader, min(start.statefulset, start.ready), start.workers, max(start.ready, 1.0))
        for start in starting
    ]
    groups = [built(index, start, behind) for index, start in enumerate(quick)]
    assert found(groups, last_write(quick, len(groups), behind)) == []


@given(st.lists(starts, min_size=1, max_size=4), st.integers(0, 3), st.booleans())
def test_replaced_worker_is_found_among_ready_groups(starting: list[Start], which: int, is_missing: bool) -> None:
    long = [Start(start.leader, start.statefulset, start.workers, max(start.ready, 2.0)) for start in starting]
    groups = [built(index, start, behind=0.0) for index, start in enumerate(long)]
    group = groups[which % len(groups)]
    lost = group.pods[-1]
    if is_missing:
        groups[which % len(groups)] = missingworkers.ObservedGroup(group.leader, group.statefulset, group.pods[:-1])
    else:
        lost["metadata"]["creationTimestamp"] = stamp(LATER)
    assert found(groups, last_write(long, len(groups), behind=0.0)) == [meta.name(lost)]


@given(st.lists(starts, min_size=1, max_size=4), st.integers(0, 4))
def test_as_many_groups_as_were_ready_show_no_loss(starting: list[Start], later: int) -> None:
    """Groups that the status does not count may have started later, with delayed workers."""
    groups = [built(index, start, behind=0.0) for index, start in enumerate(starting)]
    beyond = [built(len(groups) + number, starting[0], behind=0.0) for number in range(later)]
    for group in beyond:
        _delay(group.pods[-1])
    assert found([*groups, *beyond], last_write(starting, len(groups), behind=0.0)) == []


@pytest.mark.parametrize("how", ["terminating", "recorded", "deleted", "unready", "terminating before"])
def test_visible_change_of_a_group_is_no_loss_of_another(how: str) -> None:
    """The status counts one group. It ended or became unready later, while the other one was still starting."""
    start = Start(leader=0.0, statefulset=1.0, workers=[10.0], ready=5.0)
    whole, starting = built(0, start, behind=0.0), built(1, start, behind=0.0)
    _delay(starting.pods[-1])
    last, ending = last_write([start], 1, behind=0.0), [] if how in ("deleted", "unready") else [whole.leader]
    if how.startswith("terminating"):
        requested = LATER if how == "terminating" else 2.0
        whole.leader["metadata"] |= {"deletionTimestamp": stamp(requested + 30), "deletionGracePeriodSeconds": 30}
    elif how == "unready":
        condition = {"type": "Ready", "status": "False", "lastTransitionTime": stamp(LATER)}
        whole.pods[-1]["status"] = {"conditions": [condition]}
    if how == "deleted":
        last = structs.replace(last, groups=2)
    groups = [whole, starting] if how == "unready" else [starting]
    expected = [meta.name(starting.pods[-1])] if how == "terminating before" else []
    assert found(groups, last, ending) == expected


def _delay(worker: JSONObject) -> None:
    worker["metadata"]["creationTimestamp"] = stamp(LATER)
