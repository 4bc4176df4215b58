"""Tests that Warning events explain ranks without another explanation, and resolved problems are ignored."""

from typing import Any

import pytest
from tests.explanations.builders import NOW, ago, lws, placed, pod

from kuberuntime.objects.meta import JSONObject
from lwsctl.model import groups
from lwsctl.model import leaderworkerset as sets
from lwsctl.model.events.warningevents import Evidence, explain_views, wants_events

INVALID = (
    'Create Pod web-0 in StatefulSet web failed error: Pod "web-0" is invalid: containerPort: Invalid value: 99999'
)


def warning(
    kind: str, name: str, message: str, *, minutes: float = 1, reason: str = "FailedCreate", **more: Any
) -> JSONObject:
    return {
        "type": "Warning",
        "metadata": {"namespace": "prod"},
        "involvedObject": {"kind": kind, "name": name, "namespace": "prod", "uid": more.pop("uid", "any")},
        "reason": reason,
        "message": message,
        "lastTimestamp": ago(60 * minutes),
        **more,
    }


def whys(obj: JSONObject, pods: list[JSONObject], *events: JSONObject) -> dict[str, str]:
    (view,) = explain_views([sets.view(obj, pods)], Evidence(events=events), NOW)
    return {rank.place: rank.why for group in view.groups for rank in group.ranks}


def test_missing_leader_is_explained_by_its_statefulset() -> None:
    assert whys(lws(), [], warning("StatefulSet", "web", INVALID)) == {"0/0": INVALID, "0/1": groups.NOT_CREATED}


def test_later_leaders_have_the_reason_of_the_first() -> None:
    assert whys(lws(2, 1), [], warning("StatefulSet", "web", INVALID)) == {"0/0": INVALID, "1/0": INVALID}


def test_worker_is_explained_by_the_statefulset_of_its_group() -> None:
    quota = "Create Pod web-0-1 in StatefulSet web-0 failed error: exceeded quota: gpus"
    assert whys(lws(), [placed(0, made=600)], warning("StatefulSet", "web-0", quota))["0/1"] == quota


def test_missing_worker_statefulset_is_explained_by_the_leader() -> None:
    refused = "Failed to create worker statefulset for leader pod web-0: limits: Required value"
    event = warning("LeaderWorkerSet", "web", refused, uid="set", related={"kind": "Pod", "name": "web-0"})
    assert whys(lws(2), [placed(0, made=600), placed(1, made=600)], event) == {
        "0/0": "", "0/1": refused, "1/0": "", "1/1": groups.NOT_CREATED,
    }  # fmt: skip


def test_missing_leader_statefulset_is_explained_by_the_set() -> None:
    refused = "Failed to create leader statefulset web: limits: Required value"
    assert whys(lws(), [], warning("LeaderWorkerSet", "web", refused, uid="set"))["0/0"] == refused


def test_newest_warning_wins() -> None:
    old, new = INVALID.replace("99999", "70000"), INVALID
    events = (warning("StatefulSet", "web", new, minutes=1), warning("StatefulSet", "web", old, minutes=2))
    assert whys(lws(), [], *events)["0/0"] == new


@pytest.mark.parametrize(
    "stale",
    [
        warning("StatefulSet", "web-0", INVALID, minutes=15),
        warning("StatefulSet", "web-0", "Create Pod web-0-1 in StatefulSet web-0 failed", minutes=15),
        warning("StatefulSet", "other", INVALID),
        warning("StatefulSet", "web-0", "Create Pod web-0-2 in StatefulSet web-0 failed", minutes=9),
        warning("LeaderWorkerSet", "web", "of an earlier set of this name", uid="before"),
        warning("StatefulSet", "web-0", INVALID) | {"type": "Normal"},
    ],
    ids=[
        "before its leader",
        "before its leader, of this pod",
        "another",
        "a sibling came later",
        "earlier set",
        "normal",
    ],
)
def test_old_and_foreign_events_explain_nothing(stale: JSONObject) -> None:
    pods = [placed(made=600), placed(0, 2)]
    assert whys(lws(size=3), pods, stale)["0/1"] == groups.NOT_CREATED


def test_failure_without_repetition_expires() -> None:
    assert whys(lws(), [], warning("StatefulSet", "web", INVALID, minutes=25))["0/0"] == groups.NOT_CREATED


def test_pod_that_does_not_start_is_explained_by_its_own_events() -> None:
    mount = warning("Pod", "web-0", 'secret "token" not found', reason="FailedMount", uid="web-0-uid")
    other = warning("Pod", "web-0", "of the pod before", reason="FailedMount", uid="old", minutes=0)
    assert whys(lws(size=1), [pod(spec={"nodeName": "node-0"})], mount, other)["0/0"] == 'secret "token" not found'


def test_scheduled_pod_is_not_explained_by_the_scheduler() -> None:
    event = warning("Pod", "web-0", "0/4 nodes are available", reason="FailedScheduling", uid="web-0-uid")
    assert whys(lws(size=1), [placed(0, made=600)], event)["0/0"] == ""
    assert whys(lws(size=1), [pod()], event)["0/0"] == "0/4 nodes are available"


def test_running_pod_is_explained_by_probes_of_its_current_run() -> None:
    unready = {"type": "Ready", "status": "False", "message": "containers with unready status: [main]"}
    running = {"name": "main", "state": {"running": {"startedAt": ago(60 * 5)}}}
    leader = placed(status={"conditions": [unready], "containerStatuses": [running]})
    probe = warning("Pod", "web-0", "Readiness probe failed: 503", reason="Unhealthy", uid="web-0-uid")
    mount = warning("Pod", "web-0", "not mounted", reason="FailedMount", uid="web-0-uid", minutes=0)
    before = warning("Pod", "web-0", "of the run before", reason="Unhealthy", uid="web-0-uid", minutes=6)
    assert whys(lws(size=1), [leader], probe, mount)["0/0"] == "Readiness probe failed: 503"
    assert whys(lws(size=1), [leader], before)["0/0"] == unready["message"]


def test_reason_of_the_pod_is_kept() -> None:
    waiting = {"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
    leader = placed(status={"phase": "Pending", "containerStatuses": [waiting]})
    event = warning("Pod", "web-0", "something else", reason="Failed", uid="web-0-uid")
    assert whys(lws(size=1), [leader], event)["0/0"] == "main: no such image"


def test_times_of_series_and_of_new_events_are_read() -> None:
    event = warning("StatefulSet", "web", INVALID) | {"lastTimestamp": None, "eventTime": ago(60 * 40)}
    assert whys(lws(), [], event)["0/0"] == groups.NOT_CREATED
    assert whys(lws(), [], event | {"series": {"lastObservedTime": ago(60 * 2)}})["0/0"] == INVALID


def test_events_are_needed_when_a_rank_is_unexplained() -> None:
    whole = sets.view(lws(size=1), [placed(ready=True)])
    done = sets.view(lws(size=1), [placed(status={"phase": "Succeeded", "reason": "Completed"})])
    assert not wants_events([whole, done])
    assert wants_events([whole, sets.view(lws(), [])])
    held = sets.view(lws(startupPolicy="LeaderReady"), [placed(status={"message": "loads"})])
    assert not wants_events([held])
