"""Tests the status of a StatefulSet."""

from typing import Any

import pytest
from testkit.objects import merge
from tests.unit.localkube.controllers.objects import (
    NOW,
    build_pod,
    build_statefulset,
    build_template,
    ready_status,
)

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import STATEFULSETS
from kuberuntime.plan import changed_status
from localkube.controllers import podhealth
from localkube.controllers.statefulset import identity, revisions, status

OLD = revisions.build(build_statefulset(), 1, 0)
NEW = revisions.build(build_statefulset(template=build_template("v2")), 2, 0)
OLD_NAME, NEW_NAME = OLD["metadata"]["name"], NEW["metadata"]["name"]


def pod_of_revision(revision: str, *, since: float | None = None, **metadata: Any) -> JSONObject:
    """Build a pod with this revision that has been ready for `seconds`."""
    labels = {"labels": {identity.REVISION_LABEL: revision}}
    state = {} if since is None else {"status": ready_status(since)}
    return build_pod("web-0", merge({"metadata": labels | metadata}, state))


def counts(**change: Any) -> status.Counts:
    """Build the counts of a completed rollout with three replicas."""
    done: dict[str, Any] = {"replicas": 3, "ready": 3, "available": 3, "current": 0, "updated": 3}
    names = {"current_revision": OLD_NAME, "update_revision": NEW_NAME}
    return status.Counts(**(done | names | change))


def test_pods_are_counted_by_state_and_revision() -> None:
    owned = [
        pod_of_revision(OLD_NAME, since=60),
        pod_of_revision(NEW_NAME, since=5),
        pod_of_revision(NEW_NAME),
        pod_of_revision(OLD_NAME, since=60, deletionTimestamp="2026-01-01T11:59:59Z"),
        build_pod("web-4", {"status": {"phase": ""}}),
    ]
    assert status.count(build_statefulset(minReadySeconds=30), owned, (OLD, NEW), NOW) == counts(
        replicas=4, ready=3, available=2, current=1, updated=2
    )


def test_finished_rollout_sets_the_current_revision() -> None:
    assert status.build(build_statefulset(), counts(), 0) == {
        "observedGeneration": 1,
        "replicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "currentReplicas": 3,
        "updatedReplicas": 3,
        "currentRevision": NEW_NAME,
        "updateRevision": NEW_NAME,
        "collisionCount": 0,
    }


@pytest.mark.parametrize(
    ("spec", "change"),
    [
        pytest.param({}, {"ready": 2}, id="not all ready"),
        pytest.param({}, {"updated": 2, "current": 1}, id="not all updated"),
        pytest.param({}, {"replicas": 4}, id="one too many"),
        pytest.param({"updateStrategy": {"type": "OnDelete"}}, {}, id="OnDelete never completes"),
    ],
)
def test_unfinished_rollout_keeps_the_current_revision(spec: JSONObject, change: dict[str, int]) -> None:
    assert status.build(build_statefulset(**spec), counts(**change), 0)["currentRevision"] == OLD_NAME


def test_equal_status_is_not_written() -> None:
    built = status.build(build_statefulset(), counts(), 0)
    assert not changed_status(STATEFULSETS, build_statefulset({"status": built}), built)
    assert changed_status(STATEFULSETS, build_statefulset(), built)


def test_pod_with_a_future_ready_time_is_available() -> None:
    ahead, waiting = pod_of_revision(NEW_NAME, since=-86400), pod_of_revision(NEW_NAME, since=5)
    found = build_statefulset(minReadySeconds=30)
    assert status.count(found, [ahead, waiting], (OLD, NEW), NOW).available == 1
    assert podhealth.seconds_until_available([ahead, waiting], 30, NOW) == 25
    assert podhealth.seconds_until_available([ahead], 30, NOW) is None
