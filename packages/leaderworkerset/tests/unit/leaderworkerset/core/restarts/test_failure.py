"""Tests the recorded details of a failure."""

from typing import Any

import pytest
from tests import builders

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.recreationrecord import Failure
from leaderworkerset.core.restarts import failure
from leaderworkerset.core.restarts.failure import LONGEST_MESSAGE

LEADER = builders.leader_pod(builders.leaderworkerset_object())
WORKER = builders.worker_pod(LEADER)


TRACEBACK = """Traceback (most recent call last):
  File "train.py", line 3, in <module>
    raise OutOfMemoryError("CUDA out of memory")
OutOfMemoryError: CUDA out of memory
"""


def with_status(pod: JSONObject = WORKER, **status: Any) -> JSONObject:
    return pod | {"status": pod["status"] | status}


def container(state: str = "lastState", restarts: int = 1, **terminated: Any) -> JSONObject:
    return {"name": "main", "restartCount": restarts, state: {"terminated": terminated}}


@pytest.mark.parametrize(
    ("status", "what"),
    [
        ({"containerStatuses": [container(exitCode=1, reason="Error")]}, "main: exit code 1, Error"),
        ({"containerStatuses": [container(exitCode=137, reason="OOMKilled")]}, "main: exit code 137, OOMKilled"),
        ({"containerStatuses": [container("state", exitCode=3)]}, "main: exit code 3"),
        ({"initContainerStatuses": [container(exitCode=2)]}, "main: exit code 2"),
        ({"containerStatuses": [container(exitCode=0, restarts=0)]}, ""),
        ({"containerStatuses": [{"name": "main", "restartCount": 4}]}, ""),
        (
            {"containerStatuses": [container(exitCode=1, message=f"{TRACEBACK}closing the log\n")]},
            "main: exit code 1: OutOfMemoryError: CUDA out of memory",
        ),
        (
            {"containerStatuses": [container(exitCode=1, reason="Error", message="loaded shard 3\nloaded shard 4\n")]},
            "main: exit code 1, Error, last line: loaded shard 4",
        ),
    ],
)
def test_container_failure_is_described(status: dict[str, Any], what: str) -> None:
    assert failure.describe(with_status(**status)).description == what


def test_failure_is_identified_by_pod_and_restarts() -> None:
    pod = with_status(containerStatuses=[container(restarts=2)], initContainerStatuses=[container(restarts=3)])

    found = failure.describe(pod)

    assert found == Failure(pod="web-0-1", uid=meta.uid(WORKER), restarts=5, description=found.description)


DELETED = builders.worker_pod(LEADER, deleting=True)

STORAGE = "Pod ephemeral local storage usage exceeds the total limit of containers 10Mi. "


def test_eviction_is_described_before_ends_of_containers() -> None:
    """The kubelet terminates the containers of a pod that it evicts, so their exit codes are not the cause."""
    killed = container("state", restarts=1, exitCode=137, reason="Error")
    pod = with_status(phase="Failed", reason="Evicted", message=STORAGE, containerStatuses=[killed])
    assert failure.describe(pod).description == f"deleted: Evicted: {STORAGE.strip()}"


def test_run_of_an_evicted_pod_has_a_length() -> None:
    times = {"startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:12Z"}
    ended: JSONObject = {"containerStatuses": [container("state", restarts=0, exitCode=137, **times)]}
    assert failure.describe(with_status(phase="Failed", reason="Evicted", **ended)).longest_run == 12
    assert failure.describe(with_status(**ended)).longest_run is None


def test_closed_disruption_condition_is_not_described() -> None:
    conditions = [{"type": "DisruptionTarget", "status": "False", "reason": "PreemptionByScheduler"}]
    assert failure.describe(with_status(DELETED, conditions=conditions)).description == "deleted"


def test_long_eviction_message_is_truncated() -> None:
    what = failure.describe(with_status(DELETED, reason="Evicted", message="x " * 4000)).description
    assert len(what) < LONGEST_MESSAGE + 40


@pytest.mark.parametrize(
    ("status", "what"),
    [
        ({}, "deleted"),
        ({"reason": "NodeLost"}, "deleted: NodeLost"),
        (
            {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]},
            "deleted: EvictionByEvictionAPI",
        ),
    ],
)
def test_deletion_reason_is_described(status: dict[str, Any], what: str) -> None:
    assert failure.describe(with_status(DELETED, **status)).description == what


def test_long_message_is_truncated_at_the_end() -> None:
    """The message must fit into an event, regardless of the container's output."""
    pod = with_status(containerStatuses=[container(exitCode=1, message="error: " + "x" * 4000)])

    what = failure.describe(pod).description

    assert what.startswith("main: exit code 1: error: xxx")
    assert len(what) < LONGEST_MESSAGE + 40
