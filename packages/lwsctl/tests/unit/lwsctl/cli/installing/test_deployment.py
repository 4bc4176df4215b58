"""Tests the description of missing replicas of a Deployment."""

from typing import Any

import pytest
from testkit import objects

from lwsctl.cli.commands.install import missing_for_rollout


def deployment(*, replicas: int = 2, seen: int = 3, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "manager", "generation": 3},
        "spec": {"replicas": replicas},
        "status": {"observedGeneration": seen} | status,
    }


WAITING = {"name": "manager", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}


@pytest.mark.parametrize(
    ("status", "missing"),
    [
        ({"seen": 2, "replicas": 2}, "its controller has not observed the latest spec"),
        ({}, "0 of 2 new replicas available"),
        ({"updatedReplicas": 2, "availableReplicas": 1}, "1 of 2 new replicas available"),
        ({"updatedReplicas": 1, "availableReplicas": 2}, "1 of 2 new replicas available"),
    ],
)
def test_missing_replicas_are_counted(status: dict[str, Any], missing: str) -> None:
    given = {name: value for name, value in status.items() if name != "replicas"}
    assert missing_for_rollout(deployment(**given), []) == missing


@pytest.mark.parametrize(("replicas", "missing"), [(2, ""), (3, "1 old replicas are still running")])
def test_rollout_waits_for_old_replicas(replicas: int, missing: str) -> None:
    status = {"observedGeneration": 3, "replicas": replicas, "updatedReplicas": 2, "availableReplicas": replicas}
    assert missing_for_rollout(deployment() | {"status": status}, []) == missing


def test_pod_that_cannot_start_gives_the_reason() -> None:
    pods = [objects.pod("manager-b", phase="Pending", containerStatuses=[WAITING])]
    assert missing_for_rollout(deployment(), pods) == (
        "0 of 2 new replicas available; manager-b is ImagePullBackOff: manager: no such image"
    )


def test_rejected_pods_are_reported_first() -> None:
    """Pod Security and quotas reject pods, so there is no pod that can show the reason."""
    refused = {"type": "ReplicaFailure", "status": "True", "message": 'pods "m-1" is forbidden: violates PodSecurity'}
    assert missing_for_rollout(deployment(conditions=[refused]), []) == (
        '0 of 2 new replicas available; pods "m-1" is forbidden: violates PodSecurity'
    )
