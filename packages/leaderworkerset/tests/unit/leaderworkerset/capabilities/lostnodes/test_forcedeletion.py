"""Tests that pods on lost nodes are deleted by force, but leaders only if no second leader can run."""

from datetime import timedelta
from typing import Any

import pytest
from tests import builders

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from kuberuntime.plan import Delete, Emit, Event
from leaderworkerset.api import labels
from leaderworkerset.capabilities import names
from leaderworkerset.capabilities.lostnodes import forcedeletion
from leaderworkerset.capabilities.lostnodes.forcedeletion import StuckGroup
from leaderworkerset.core import decisionevents
from leaderworkerset.core.policies.policy import LiveGroup, PolicyDecision

LWS = builders.leaderworkerset_object()
LEADER = builders.leader_pod(LWS, deleting=True, node="n1")
WORKER = builders.worker_pod(LEADER, deleting=True, node="n1")
"""Both pods have been terminating for one second."""


def node(ready: str | None, *taints: str) -> JSONObject:
    conditions = [] if ready is None else [{"type": "Ready", "status": ready, "reason": "NodeStatusUnknown"}]
    return {
        "metadata": {"name": "n1"},
        "spec": {"taints": [{"key": taint, "effect": "NoExecute"} for taint in taints]} if taints else {},
        "status": {"conditions": conditions},
    }


def stuck(*pods: JSONObject, grace: float = 1, later: float = 0) -> StuckGroup:
    moment = builders.NOW + timedelta(seconds=later)
    return StuckGroup(lws=LWS, pods=pods, grace=timedelta(seconds=grace), now=moment)


def deletion(pod: JSONObject, why: str) -> Delete:
    note = f"Pod {meta.name(pod)} is Terminating on node n1, which {why}. Force-deleted it to unblock group 0"
    event = Event("Warning", "LostPod", "Delete", note, decisionevents.reference(LWS), decisionevents.reference(pod))
    return Delete(resource=PODS, key=meta.key(pod), uid=meta.uid(pod), grace_period=0, on_success=(event,))


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (None, "does not exist"),
        (node("Unknown"), "is not Ready (Unknown, NodeStatusUnknown)"),
        (node("False"), "is not Ready (False, NodeStatusUnknown)"),
        (node(None), "is not Ready (Unknown)"),
        (node("True", forcedeletion.OUT_OF_SERVICE), f"has the taint {forcedeletion.OUT_OF_SERVICE}"),
    ],
)
def test_worker_on_a_lost_node_is_released(found: JSONObject | None, why: str) -> None:
    assert forcedeletion.nodes_to_observe(stuck(WORKER)) == {"n1"}
    assert forcedeletion.force_delete_stuck_pods(stuck(WORKER), {"n1": found}) == PolicyDecision(
        actions=(deletion(WORKER, why),), requeue_after=30.0
    )


def test_worker_on_a_reporting_node_is_not_released() -> None:
    """The container terminates slowly, or the pod has a finalizer, so the manager does not force the deletion."""
    assert forcedeletion.force_delete_stuck_pods(stuck(WORKER), {"n1": node("True")}) == PolicyDecision(
        actions=(), requeue_after=30.0
    )


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (None, "does not exist"),
        (node("Unknown", forcedeletion.OUT_OF_SERVICE), f"has the taint {forcedeletion.OUT_OF_SERVICE}"),
    ],
)
def test_leader_is_released_when_its_node_is_certainly_down(found: JSONObject | None, why: str) -> None:
    assert forcedeletion.force_delete_stuck_pods(stuck(LEADER), {"n1": found}).actions == (deletion(LEADER, why),)


def test_leader_that_may_run_is_not_released() -> None:
    """Two leaders with the same identity could run. The reason for the delay is reported once."""
    note = (
        "Pod web-0 is Terminating on node n1, which is not Ready (Unknown, NodeStatusUnknown)."
        " A leader is force-deleted only if its node is deleted or has the taint node.kubernetes.io/out-of-service"
    )
    event = Event("Warning", "LostPod", "Hold", note, decisionevents.reference(LWS), decisionevents.reference(LEADER))
    unheard = {"n1": node("Unknown")}

    assert forcedeletion.force_delete_stuck_pods(stuck(LEADER), unheard) == PolicyDecision(
        actions=(Emit(events=(event,)),), requeue_after=30.0
    )
    assert forcedeletion.force_delete_stuck_pods(stuck(LEADER, later=30), unheard) == PolicyDecision(
        actions=(), requeue_after=30.0
    )


@pytest.mark.parametrize(
    "pod",
    [
        builders.worker_pod(LEADER, node="n1"),
        builders.worker_pod(LEADER, deleting=True),
        WORKER | {"metadata": WORKER["metadata"] | {"deletionGracePeriodSeconds": 0}},
    ],
    ids=["lives", "on no node", "deleted by force already"],
)
def test_other_pods_are_not_released(pod: dict[str, Any]) -> None:
    assert forcedeletion.nodes_to_observe(stuck(pod)) == set()
    assert forcedeletion.force_delete_stuck_pods(stuck(pod), {"n1": None}) == PolicyDecision()


def test_release_waits_for_the_grace_period() -> None:
    assert forcedeletion.nodes_to_observe(stuck(WORKER, grace=31)) == set()
    assert forcedeletion.force_delete_stuck_pods(stuck(WORKER, grace=31), {}) == PolicyDecision(
        actions=(), requeue_after=30.0
    )


def test_wrong_clock_does_not_prolong_the_next_check() -> None:
    ahead = WORKER | {"metadata": WORKER["metadata"] | {"deletionTimestamp": "2031-01-01T00:00:00Z"}}
    assert forcedeletion.force_delete_stuck_pods(stuck(ahead, grace=31), {}) == PolicyDecision(
        actions=(), requeue_after=30.0
    )


@pytest.mark.parametrize("text", ["1s", "24h", "off"])
def test_release_annotation_accepts_a_duration_or_never(text: str) -> None:
    assert list(forcedeletion.errors(builders.annotated({labels.RELEASE_LOST_PODS_AFTER: text}))) == []


@pytest.mark.parametrize("text", ["", "0s", "25h", "0"])
def test_invalid_release_annotation_is_rejected_and_ignored(text: str) -> None:
    (error,) = forcedeletion.errors(builders.annotated({labels.RELEASE_LOST_PODS_AFTER: text}))

    assert error.path == f"metadata.annotations.{labels.RELEASE_LOST_PODS_AFTER}"
    assert forcedeletion.force_deletion_delay(group(text)) == timedelta(minutes=5)


@pytest.mark.parametrize(("text", "grace"), [("30s", timedelta(seconds=30)), ("off", None)])
def test_release_annotation_overrides_the_manager_setting(text: str, grace: timedelta | None) -> None:
    assert forcedeletion.force_deletion_delay(group(text)) == grace


def group(text: str) -> LiveGroup:
    obj = builders.leaderworkerset_object(metadata={"annotations": {labels.RELEASE_LOST_PODS_AFTER: text}})
    return LiveGroup(leader=LEADER, obj=obj, now=builders.NOW, facts={names.LOST_NODES: timedelta(minutes=5)})
