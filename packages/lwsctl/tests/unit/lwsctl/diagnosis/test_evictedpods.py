"""Tests pods that a kubelet evicted. The resource, amount and limit are in the pod, the record and the events."""

import pytest
from tests.explanations.builders import (
    ago,
    conditions,
    container,
    ended,
    event,
    lws,
    observed,
    placed,
    pod,
    ready,
    recreated,
)
from tests.unit.lwsctl.diagnosis.test_diagnose import told

from kuberuntime.objects.resources import CORE_EVENTS
from lwsctl.model.health import Verdict

STORAGE = "Pod ephemeral local storage usage exceeds the total limit of containers 10Mi. "

MESSAGES = {
    STORAGE: "below 10Mi",
    'Container main exceeded its local ephemeral storage limit "10Mi". ': "reduce the files and logs of container main below 10Mi",
    'Usage of EmptyDir volume "scratch" exceeds the limit "1Gi". ': "reduce the data in volume scratch below 1Gi",
    "The node was low on resource: ephemeral-storage. Threshold quantity: 10737418240, available: 9Gi. Container main was "
    "using 60Mi, request is 0, has larger consumption of ephemeral-storage. ": "request more ephemeral-storage in the template of web (the pod used 60Mi, and requested 0)",
    "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. ": "request memory in the template",
    "The node had condition: [DiskPressure]. ": "free resources on the node (DiskPressure)",
}
"""Kubelet messages, with strings that the remedy contains."""

STARTING = [pod(made=1), pod(0, 1, made=1)]


@pytest.mark.parametrize("message", MESSAGES)
def test_evicted_pod_is_explained_after_it_was_replaced(message: str) -> None:
    found = told(recreated(STARTING, failure=f"deleted: Evicted: {message.strip()}"))
    assert (found.code, found.verdict) == ("LWS-E054", Verdict.CRASHING)
    assert found.sentence == f"pod web-0-1 was terminated, because the kubelet evicted it: {message.strip()}"
    assert any(MESSAGES[message] in step for step in found.steps)


@pytest.mark.parametrize(("times", "verdict"), [(1, Verdict.PROGRESSING), (2, Verdict.CRASHING)])
def test_eviction_of_a_leader_is_read_from_events(times: int, verdict: Verdict) -> None:
    """The group is deleted with its leader and is not recreated, so there is no record."""
    events = [
        event("Pod", "web-0", "Evicted", STORAGE, uid=f"former-{time}", seconds=20 * time)
        for time in range(1, times + 1)
    ]
    found = told(observed(STARTING, {CORE_EVENTS: events}))
    assert (found.code, found.verdict) == ("LWS-E054", verdict)
    assert (
        "pod web-0 was terminated 20s ago, because the kubelet evicted it: Pod ephemeral local storage"
        in found.sentence
    )


def test_eviction_is_the_cause_while_its_containers_stop() -> None:
    """A container that handles SIGTERM exits with code 0, and the kubelet sets the phase Failed after that."""
    stopping = placed(status={"containerStatuses": [container(terminated=ended(0, 2, "Completed"))]})
    evicted = event("Pod", "web-0", "Evicted", STORAGE, uid=stopping["metadata"]["uid"], seconds=3)
    assert told(observed([stopping, ready(0, 1)])).code == "LWS-E075"
    assert told(observed([stopping, ready(0, 1)], {CORE_EVENTS: [evicted]})).code == "LWS-E054"


def test_old_or_explained_eviction_is_not_the_cause() -> None:
    old = event("Pod", "web-0", "Evicted", STORAGE, uid="former", seconds=700)
    assert told(observed(STARTING, {CORE_EVENTS: [old]})).code != "LWS-E054"
    recent = event("Pod", "web-0", "Evicted", STORAGE, uid="former", seconds=100)
    crashed = placed(status={"containerStatuses": [container(terminated=ended(3, 5))]})
    assert told(observed([crashed, ready(0, 1)], {CORE_EVENTS: [recent]})).code == "LWS-E071"


def test_preempted_and_drained_pods_have_different_causes() -> None:
    preempted = told(recreated(STARTING, failure="deleted: PreemptionByScheduler"))
    assert preempted.code == "LWS-E054"
    assert any("priorityClassName" in step for step in preempted.steps)
    assert told(recreated(STARTING, failure="deleted: EvictionByEvictionAPI")).code == "LWS-E081"


def test_leader_that_is_evicted_again_and_again_is_never_healthy() -> None:
    """The pods are ready between two evictions, which only events record."""
    of = lws(status={"readyReplicas": 1, "updatedReplicas": 1, "conditions": conditions(Available="True")})
    pods = [ready(made=40), ready(0, 1, made=40)]
    for member in pods:
        member["status"]["containerStatuses"][0]["state"] = {"running": {"startedAt": ago(30)}}
        member["status"]["conditions"][0]["lastTransitionTime"] = ago(28)
    assert told(observed(pods, of=of)).verdict is Verdict.HEALTHY
    events = [event("Pod", "web-0", "Evicted", STORAGE, uid=f"former-{time}", seconds=time) for time in (50, 250)]
    found = told(observed(pods, {CORE_EVENTS: events}, of=of))
    assert (found.code, found.verdict) == ("LWS-E054", Verdict.CRASHING)
