"""Tests whether containers and kubelets, disruptions, or deletions caused a failure."""

from typing import Any

import pytest
from tests import builders

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.recreationrecord import Origin
from leaderworkerset.capabilities.enabled import EXTENSIONS
from leaderworkerset.core.policies.disruptions import failure_origin

LWS = builders.leaderworkerset_object(
    metadata={"annotations": {"leaderworkerset.sigs.k8s.io/in-place-restarts": "60s"}}
)
WORKER = builders.worker_pod(builders.leader_pod(LWS), 1)
REQUESTED = "2026-01-01T00:00:30Z"
DELETED = {"deletionTimestamp": "2026-01-01T00:01:00Z", "deletionGracePeriodSeconds": 30}
RUNNING = {"name": "main", "state": {"running": {}}}


def target(reason: str) -> JSONObject:
    return {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": reason}]}


def ended(code: int, finished: str = REQUESTED, **fields: Any) -> JSONObject:
    return {"name": "main", "state": {"terminated": {"exitCode": code, "finishedAt": finished} | fields}}


def worker(*containers: JSONObject, phase: str = "Running", **status: Any) -> JSONObject:
    """Return the last state of a deleted worker."""
    metadata = WORKER["metadata"] | DELETED
    return WORKER | {"metadata": metadata, "status": {"phase": phase, "containerStatuses": [*containers]} | status}


BEFORE, AFTER = "2026-01-01T00:00:10Z", "2026-01-01T00:00:35Z"

DISRUPTED = {
    "evicted by API": worker(RUNNING, **target("EvictionByEvictionAPI")),
    "tainted": worker(RUNNING, **target("DeletionByTaintManager")),
    "preempted": worker(RUNNING, **target("PreemptionByScheduler")),
    "lost with its node": worker(RUNNING, phase="Failed", **target("DeletionByPodGC")),
    "evicted, and ended since": worker(ended(137, AFTER), phase="Failed", **target("EvictionByEvictionAPI")),
    "ended by a node whose clock is behind": worker(
        ended(143, BEFORE), phase="Failed", **target("EvictionByEvictionAPI")
    ),
    "preempted by its kubelet": worker(
        ended(137), phase="Failed", reason="Preempting", **target("TerminationByKubelet")
    ),
    "on a node that was shut down": worker(ended(137), phase="Failed", reason="Terminated"),
}
FAILED = {
    "crashed before": worker(ended(1, BEFORE)),
    "crashed before its eviction": worker(ended(1, BEFORE), **target("EvictionByEvictionAPI")),
    "out of memory": worker(ended(137, BEFORE, reason="OOMKilled"), **target("EvictionByEvictionAPI")),
    "ended by itself": worker(ended(0, BEFORE), phase="Succeeded"),
    "restarted before": worker(RUNNING | {"restartCount": 2}),
    "restarted before its eviction": worker(RUNNING | {"restartCount": 1}, **target("EvictionByEvictionAPI")),
    "evicted by its kubelet": worker(ended(137), phase="Failed", reason="Evicted", **target("TerminationByKubelet")),
    "rejected by its kubelet": worker(phase="Failed", reason="UnexpectedAdmissionError"),
}
DELETIONS = {
    "deleted": worker(RUNNING),
    "pending": worker(phase="Pending"),
    "stopped since": worker(ended(143)),
    "failed on request": worker(ended(1, AFTER), phase="Failed"),
    "after its init container": worker(
        RUNNING, initContainerStatuses=[ended(0, BEFORE)], conditions=[{"type": "Ready", "status": "True"}]
    ),
    "no disruption": worker(RUNNING, conditions=[{"type": "DisruptionTarget", "status": "False", "reason": "a"}]),
    "restarted in place": worker(
        RUNNING
        | {"restartCount": 1, "lastState": {"terminated": {"exitCode": 137, "reason": "RestartingAllContainers"}}}
    ),
    "deleted while no manager ran": worker(reason="no manager was running"),
}


@pytest.mark.parametrize(
    ("origin", "failed"),
    [
        *((Origin.DISRUPTION, each) for each in DISRUPTED.values()),
        *((Origin.PROGRAM, each) for each in FAILED.values()),
        *((Origin.DELETION, each) for each in DELETIONS.values()),
    ],
    ids=[*DISRUPTED, *FAILED, *DELETIONS],
)
def test_origin_of_a_failure_is_known_from_the_pod(origin: Origin, failed: JSONObject) -> None:
    lws = builders.annotated(LWS["metadata"]["annotations"])
    assert failure_origin(failed, lws, EXTENSIONS.excuses) is origin
