"""Tests the first failed rank, the group's outcome, and the preceding changes in an episode."""

from datetime import UTC, datetime
from typing import Any

import pytest
from tests import builders

from kuberuntime.objects.meta import JSONObject
from kuberuntime.texts.masking import Mask
from leaderworkerset.api import episode, labels
from leaderworkerset.api.episode import Outcome
from leaderworkerset.api.recreationrecord import RecreationState
from leaderworkerset.recording.episodebuilder import GroupObservation, build

NOW = datetime(2026, 11, 25, 9, 0, tzinfo=UTC)


def ended(code: int, second: int | None = 1, reason: str = "Error") -> JSONObject:
    """Return the state of a terminated container."""
    finished = None if second is None else f"2026-11-25T08:59:{second:02}Z"
    return {"terminated": {"exitCode": code, "reason": reason, "finishedAt": finished}}


def pod(rank: int, *, group: str = "0", key: str = "", **status: Any) -> JSONObject:
    """Return a pod of a group in the LeaderWorkerSet `web`."""
    named = {"uid": f"uid-{rank}"}
    statuses = [{"name": "app", **status}]
    return builders.rank_pod(group, rank, key=key, node=f"node-{rank}", metadata=named, containerStatuses=statuses)


def record(state: str | None = None, **more: str) -> JSONObject:
    """Return the recreation record for the pod web-0-1."""
    told = {labels.RECREATIONS: "3", labels.FAILED_POD: "web-0-1", labels.FAILURE: "app: exit code 3", **more}
    told |= {labels.RECREATE_AFTER: "2026-11-25T09:00:10+00:00"} | ({labels.RECREATION_STATE: state} if state else {})
    return {"metadata": {"annotations": told}}


def traces(*pods: JSONObject, **more: Any) -> GroupObservation:
    """Return the traces of these pods."""
    return GroupObservation(pods=pods, now=NOW, **more)


def test_first_rank_is_the_earliest_failure() -> None:
    leader = pod(0, state=ended(143, 5))
    first = pod(1, restartCount=1, lastState=ended(3, 1), state=ended(143, 5))
    done = pod(2, state=ended(0, 0))
    found = build(traces(leader, first, done, record=record()), Mask())
    assert (found.first_rank, found.failed_pod) == (1, "web-0-1")
    assert [(one.exit_code, one.reason) for one in found.ranks[1].containers[0].ends] == [(3, "Error"), (143, "Error")]
    assert [(one.rank, one.node, one.phase) for one in found.ranks] == [
        (0, "node-0", "Running"),
        (1, "node-1", "Running"),
        (2, "node-2", "Running"),
    ]


def test_simultaneous_failures_have_no_first_rank() -> None:
    pods = [pod(0, state=ended(1)), pod(1, state=ended(1))]
    found = build(traces(*pods, record=record()), Mask())
    assert (found.first_rank, found.failed_pod, found.failure) == (None, "web-0-1", "app: exit code 3")


def test_first_rank_and_failed_pod_have_the_same_source() -> None:
    """The group was recreated because of rank 1, whose failure was observed first."""
    pods = [pod(0, restartCount=1, lastState=ended(9, 1)), pod(1, restartCount=1, lastState=ended(3, 2))]
    found = build(traces(*pods, record=record()), Mask())
    assert (found.first_rank, found.failed_pod, found.failure) == (0, "web-0", "app: exit code 9, Error")


def test_first_rank_is_unknown_after_many_restarts() -> None:
    pods = [pod(0, restartCount=3, lastState=ended(9, 1)), pod(1, restartCount=1, lastState=ended(3, 2))]
    assert build(traces(*pods, record=record()), Mask()).first_rank is None


def test_rank_stopped_with_its_group_has_not_failed() -> None:
    """The rank was deleted at second 4, and its container exited because of SIGTERM in the same second."""
    asked = pod(1, state=ended(143, 4))
    asked["metadata"] |= {"deletionTimestamp": "2026-11-25T08:59:34Z", "deletionGracePeriodSeconds": 30}
    found = build(traces(pod(0, restartCount=1, lastState=ended(9, 4)), asked), Mask())
    assert (found.first_rank, found.failed_pod) == (0, "web-0")
    assert [one.reason for one in found.ranks[1].containers[0].ends] == ["stopped on request"]


def test_failed_pod_is_first_when_no_exit_time_is_known() -> None:
    pods = [pod(0), pod(1, state=ended(1, None))]
    assert build(traces(*pods, record=record()), Mask()).first_rank == 1
    found = build(traces(pod(0)), Mask())
    assert (found.first_rank, found.failed_pod, found.failure) == (None, "", "")


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        (RecreationState.WAITING, Outcome.FAILED),
        (RecreationState.EXHAUSTED, Outcome.EXHAUSTED),
        (RecreationState.RECREATED, Outcome.RECREATED),
        (None, Outcome.RECREATED),
        ("strange", Outcome.RECREATED),
    ],
)
def test_outcome_is_read_from_the_record(state: str | None, outcome: Outcome) -> None:
    found = build(traces(pod(0), record=record(state)), Mask())
    assert (found.outcome, found.recreations, found.recreate_after) == (outcome, 3, "2026-11-25T09:00:10+00:00")
    assert found.failure == "app: exit code 3"


def test_failed_pod_describes_itself_without_a_record() -> None:
    found = build(traces(pod(0, restartCount=1, lastState=ended(7))), Mask())
    assert (found.outcome, found.failure, found.recreations) == (Outcome.FAILED, "app: exit code 7, Error", 0)


@pytest.mark.parametrize("states", [{"state": ended(137, 5)}, {}], ids=["killed", "never started"])
def test_evicted_pod_is_described_by_the_kubelets_message(states: JSONObject) -> None:
    evicted = pod(1, **states)
    evicted["status"] |= {"phase": "Failed", "reason": "Evicted", "message": "Pod exceeds 10Mi of storage."}
    found = build(traces(pod(0), evicted), Mask())
    assert (found.failed_pod, found.failure) == ("web-0-1", "deleted: Evicted: Pod exceeds 10Mi of storage.")


@pytest.mark.parametrize(
    ("uid", "container", "text"),
    [
        ("uid-1", "app", "the liveness probe failed, so the kubelet killed the container; app: exit code 0, Completed"),
        ("uid-1", "other", "app: exit code 0, Completed"),
        ("of an earlier pod", "app", "app: exit code 0, Completed"),
    ],
)
def test_failure_names_the_kill_of_that_run(uid: str, container: str, text: str) -> None:
    own = {labels.FAILURE: "app: exit code 0, Completed", labels.FAILED_POD_UID: "uid-1"}
    kill = {
        "reason": "Killing",
        "message": f"Container {container} failed liveness probe, will be restarted",
        "involvedObject": {"kind": "Pod", "name": "web-0-1", "uid": uid},
        "lastTimestamp": "2026-11-25T08:59:00Z",
    }
    failed = pod(1, restartCount=1, lastState=ended(0, 2, "Completed"))
    assert build(traces(failed, record=record(**own), events=[kill, {}]), Mask()).failure == text
    assert build(traces(pod(0), record=record(**own), events=[kill]), Mask()).failure == text


def test_stored_number_of_recreations_is_bounded() -> None:
    found = build(traces(pod(0), record=record(**{labels.RECREATIONS: "9" * 5000})), Mask())
    assert found.recreations == 0


def test_last_lines_of_every_run_are_kept_and_masked() -> None:
    logs = {("uid-0", "app"): ["\n".join(map(str, range(500))), "password=hunter2"]}
    found = build(traces(pod(0), logs=logs), Mask())
    first, second = found.ranks[0].containers[0].logs
    assert first == tuple(map(str, range(300, 500)))
    assert second == ("password=[masked]",)
    assert found.masked == 1


def test_events_are_kept_in_order_and_masked() -> None:
    def event(uid: str, second: int, message: str) -> JSONObject:
        return {
            "metadata": {"name": f"{uid}.{second}"},
            "involvedObject": {"kind": "Pod", "name": uid, "uid": uid},
            "type": "Warning",
            "reason": "BackOff",
            "message": message,
            "lastTimestamp": f"2026-11-25T08:59:{second:02}Z",
            "count": 2,
        }

    events = [event("uid-0", 2, "token=abcdefgh"), event("other", 1, "not ours"), event("uid-lws", 1, "first"), {}]
    lws = builders.leaderworkerset_object()
    lws["metadata"]["uid"] = "uid-lws"
    found = build(traces(pod(0), lws=lws, events=events), Mask())
    assert [(one.message, one.count, one.is_warning) for one in found.events] == [
        ("first", 2, True),
        ("token=[masked]", 2, True),
    ]
    many = [event("uid-0", 1, str(number)) for number in range(150)]
    assert len(build(traces(pod(0), events=many), Mask()).events) == episode.MOST_EVENTS


def test_revision_lists_its_changes() -> None:
    old, new = (builders.leaderworkerset_object(image=image) for image in ("app:1", "app:2"))
    key = builders.key_of(new)
    known = [builders.revision(old, number=2), builders.revision(new, number=5)]
    found = build(traces(pod(0, key=key), lws=new, revisions=known), Mask()).revision
    assert found is not None
    assert (found.number, found.key, found.before) == (5, key, 2)
    assert any("app:1 -> app:2" in change for change in found.changes)
    first = build(traces(pod(0, key=builders.key_of(old)), lws=new, revisions=known), Mask()).revision
    assert first is not None
    assert (first.number, first.before, first.changes) == (2, None, ())


def test_unreadable_revision_is_named_and_missing_one_omitted() -> None:
    old, new = (builders.leaderworkerset_object(image=image) for image in ("app:1", "app:2"))
    known = [builders.revision(old, number=2) | {"data": {}}, builders.revision(new, number=5)]
    found = build(traces(pod(0, key=builders.key_of(new)), lws=new, revisions=known), Mask()).revision
    assert found is not None
    assert found.changes[0].startswith("cannot be determined: ")
    assert build(traces(pod(0, key="gone"), lws=new, revisions=known), Mask()).revision is None
    assert build(traces(pod(0, key="gone"), revisions=known), Mask()).revision is None


def test_pod_without_a_place_is_omitted() -> None:
    strange = pod(0, group="none")
    assert len(build(traces(strange, pod(1)), Mask()).ranks) == 1
    with pytest.raises(ValueError, match="group labels"):
        build(traces(strange), Mask())
