"""Warning events explain ranks that their pods do not explain; resolved problems explain nothing."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from lwsctl.views import groups
from lwsctl.views.events.warningevents import Evidence, explained, wants_events

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
INVALID = (
    'Create Pod web-0 in StatefulSet web failed error: Pod "web-0" is invalid: containerPort: Invalid value: 99999'
)


def at(minutes: float) -> str:
    """Return a time so many minutes ago."""
    return (NOW - timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z")


def lws(replicas: int = 1, size: int = 2, **spec: Any) -> JSONObject:
    return {
        "metadata": {"name": "web", "namespace": "prod", "uid": "set", "creationTimestamp": at(30)},
        "spec": {"replicas": replicas, "leaderWorkerTemplate": {"size": size}, **spec},
    }


def pod(group: int, rank: int, *, made: float = 10, node: str = "node-0", **status: Any) -> JSONObject:
    name = f"web-{group}" if rank == 0 else f"web-{group}-{rank}"
    own = {labels.GROUP_INDEX: str(group), labels.WORKER_INDEX: str(rank)}
    return {
        "metadata": {
            "name": name,
            "namespace": "prod",
            "labels": own,
            "uid": f"{name}-uid",
            "creationTimestamp": at(made),
        },
        "spec": {"nodeName": node},
        "status": {"phase": "Pending", **status},
    }


def warning(
    kind: str, name: str, message: str, *, minutes: float = 1, reason: str = "FailedCreate", **more: Any
) -> JSONObject:
    return {
        "type": "Warning",
        "metadata": {"namespace": "prod"},
        "involvedObject": {"kind": kind, "name": name, "namespace": "prod", "uid": more.pop("uid", "any")},
        "reason": reason,
        "message": message,
        "lastTimestamp": at(minutes),
        **more,
    }


def whys(obj: JSONObject, pods: list[JSONObject], *events: JSONObject) -> dict[str, str]:
    (view,) = explained([groups.view(obj, pods)], Evidence(events=events), NOW)
    return {rank.place: rank.why for group in view.groups for rank in group.ranks}


def test_missing_leader_is_explained_by_its_statefulset() -> None:
    assert whys(lws(), [], warning("StatefulSet", "web", INVALID)) == {"0/0": INVALID, "0/1": groups.NOT_CREATED}


def test_later_leaders_have_the_reason_of_the_first() -> None:
    assert whys(lws(2, 1), [], warning("StatefulSet", "web", INVALID)) == {"0/0": INVALID, "1/0": INVALID}


def test_worker_is_explained_by_the_statefulset_of_its_group() -> None:
    quota = "Create Pod web-0-1 in StatefulSet web-0 failed error: exceeded quota: gpus"
    assert whys(lws(), [pod(0, 0)], warning("StatefulSet", "web-0", quota))["0/1"] == quota


def test_missing_worker_statefulset_is_explained_by_the_leader() -> None:
    refused = "Failed to create worker statefulset for leader pod web-0: limits: Required value"
    event = warning("LeaderWorkerSet", "web", refused, uid="set", related={"kind": "Pod", "name": "web-0"})
    assert whys(lws(2), [pod(0, 0), pod(1, 0)], event) == {
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
    pods = [pod(0, 0, made=10), pod(0, 2, made=5)]
    assert whys(lws(size=3), pods, stale)["0/1"] == groups.NOT_CREATED


def test_failure_without_repetition_expires() -> None:
    assert whys(lws(), [], warning("StatefulSet", "web", INVALID, minutes=25))["0/0"] == groups.NOT_CREATED


def test_pod_that_does_not_start_is_explained_by_its_own_events() -> None:
    mount = warning("Pod", "web-0", 'secret "token" not found', reason="FailedMount", uid="web-0-uid")
    other = warning("Pod", "web-0", "of the pod before", reason="FailedMount", uid="old", minutes=0)
    assert whys(lws(size=1), [pod(0, 0)], mount, other)["0/0"] == 'secret "token" not found'


def test_scheduled_pod_is_not_explained_by_the_scheduler() -> None:
    event = warning("Pod", "web-0", "0/4 nodes are available", reason="FailedScheduling", uid="web-0-uid")
    assert whys(lws(size=1), [pod(0, 0)], event)["0/0"] == ""
    assert whys(lws(size=1), [pod(0, 0, node="")], event)["0/0"] == "0/4 nodes are available"


def test_running_pod_is_explained_by_probes_of_its_current_run() -> None:
    unready = {"type": "Ready", "status": "False", "message": "containers with unready status: [main]"}
    running = {"name": "main", "state": {"running": {"startedAt": at(5)}}}
    leader = pod(0, 0, phase="Running", conditions=[unready], containerStatuses=[running])
    probe = warning("Pod", "web-0", "Readiness probe failed: 503", reason="Unhealthy", uid="web-0-uid")
    mount = warning("Pod", "web-0", "not mounted", reason="FailedMount", uid="web-0-uid", minutes=0)
    before = warning("Pod", "web-0", "of the run before", reason="Unhealthy", uid="web-0-uid", minutes=6)
    assert whys(lws(size=1), [leader], probe, mount)["0/0"] == "Readiness probe failed: 503"
    assert whys(lws(size=1), [leader], before)["0/0"] == unready["message"]


def test_reason_of_the_pod_is_kept() -> None:
    waiting = {"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
    leader = pod(0, 0, containerStatuses=[waiting])
    event = warning("Pod", "web-0", "something else", reason="Failed", uid="web-0-uid")
    assert whys(lws(size=1), [leader], event)["0/0"] == "main: no such image"


def test_times_of_series_and_of_new_events_are_read() -> None:
    event = warning("StatefulSet", "web", INVALID) | {"lastTimestamp": None, "eventTime": at(40)}
    assert whys(lws(), [], event)["0/0"] == groups.NOT_CREATED
    assert whys(lws(), [], event | {"series": {"lastObservedTime": at(2)}})["0/0"] == INVALID


def test_events_are_needed_when_a_rank_is_unexplained() -> None:
    ready = {"type": "Ready", "status": "True"}
    whole = groups.view(lws(size=1), [pod(0, 0, phase="Running", conditions=[ready])])
    done = groups.view(lws(size=1), [pod(0, 0, phase="Succeeded", reason="Completed")])
    assert not wants_events([whole, done])
    assert wants_events([whole, groups.view(lws(), [])])
    held = groups.view(lws(startupPolicy="LeaderReady"), [pod(0, 0, phase="Running", message="loads")])
    assert not wants_events([held])
