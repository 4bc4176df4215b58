"""Tests failed groups that will be recreated, and exhausted groups."""

from typing import Any

import pytest
from tests import builders

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.recreationrecord import Failure, Recreation, RecreationState
from leaderworkerset.capabilities.enabled import EXTENSIONS
from leaderworkerset.core.policies import condemned, recreation

LWS = builders.leaderworkerset_object(size=2)
LEADER = builders.leader_pod(LWS)
WORKERS = builders.worker_statefulset(LEADER)
WORKER = builders.worker_pod(LEADER, 1)
RESTARTED = WORKER | {"status": {"phase": "Running", "containerStatuses": [{"name": "a", "restartCount": 1}]}}


def record(state: RecreationState, leader: JSONObject = LEADER) -> JSONObject:
    failure = Failure(pod="web-0-1")
    made = Recreation(
        leader=leader["metadata"]["uid"], revision="k", count=2, due_at=builders.NOW, failure=failure, state=state
    )
    return recreation.build(LWS, leader, made)


def is_condemned(*pods: JSONObject, known: JSONObject | None = None, lws: JSONObject = LWS) -> bool:
    return condemned.is_condemned(lws, LEADER, WORKERS, known, pods, EXTENSIONS.excuses)


@pytest.mark.parametrize("state", RecreationState)
def test_differs_from_upstream_group_that_waits_is_not_ready(state: RecreationState) -> None:
    """A failed group is not ready while it is waiting to be recreated.

    The Go controller recreates failed groups immediately.
    """
    assert is_condemned(known=record(state))
    assert not is_condemned(known=record(state, builders.leader_pod(LWS, uid="earlier")))
    assert not is_condemned()


def test_group_has_failed_when_a_pod_fails_before_its_record() -> None:
    assert is_condemned(RESTARTED)
    assert is_condemned(WORKER | {"metadata": WORKER["metadata"] | {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    assert not is_condemned(WORKER)
    foreign = RESTARTED["metadata"] | {"ownerReferences": [{"kind": "StatefulSet", "name": "web-0", "uid": "u"}]}
    assert not is_condemned(RESTARTED | {"metadata": foreign})


def test_terminating_leader_does_not_fail_the_group() -> None:
    """As in the Go controller, the group is ready until its pod becomes unready."""
    going = LEADER["metadata"] | {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert not is_condemned(LEADER | {"metadata": going})


@pytest.mark.parametrize(
    "lws",
    [
        builders.leaderworkerset_object(template={"restartPolicy": "None"}),
        LWS | {"spec": {"leaderWorkerTemplate": {"size": "two"}}},
        {},
    ],
    ids=["no restart policy", "unreadable", "deleted"],
)
def test_set_without_recreation_does_not_fail_groups(lws: dict[str, Any]) -> None:
    assert not is_condemned(RESTARTED, known=record(RecreationState.WAITING), lws=lws)


def test_expected_restart_does_not_fail_the_group() -> None:
    tolerant = builders.leaderworkerset_object(
        metadata={"annotations": {"leaderworkerset.sigs.k8s.io/in-place-restarts": "60s"}}
    )
    ended = {"terminated": {"exitCode": 137, "reason": "RestartingAllContainers"}}
    statuses = [{"name": "a", "restartCount": 1, "lastState": ended}]
    pod = WORKER | {"status": {"phase": "Running", "containerStatuses": statuses}}
    assert not is_condemned(pod, lws=tolerant)
    assert is_condemned(pod)
