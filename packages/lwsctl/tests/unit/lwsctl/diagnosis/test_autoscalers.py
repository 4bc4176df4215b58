"""Tests that messages from autoscalers and image pulls for a waiting pod are read and reported."""

from datetime import timedelta

import pytest
from msgspec.structs import replace
from tests.explanations.builders import event, normal
from tests.explanations.clouds import awaiting_node, creating

from kuberuntime.objects.meta import JSONObject
from lwsctl.diagnosis.causes.components.autoscalers import NODE_CLAIMS
from lwsctl.diagnosis.diagnose import diagnose
from lwsctl.diagnosis.observed import Commands, Observed
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.model.health import Verdict
from lwsctl.views.selection import Selection

TRIGGERED = "pod triggered scale-up: [{gpu-pool-a 0->2 (max: 8)}]"


def told(situation: Observed, later: float = 0) -> Diagnosis:
    return diagnose(replace(situation, now=situation.now + timedelta(seconds=later)), Selection("web"))


def autoscaler(reason: str, message: str, seconds: float = 40) -> JSONObject:
    return normal(reason, message, seconds=seconds, component="cluster-autoscaler")


def karpenter(reason: str, message: str, seconds: float = 30) -> JSONObject:
    return normal(reason, message, seconds=seconds, component="karpenter")


def why(situation: Observed) -> str:
    return situation.view.groups[0].ranks[0].why


def test_added_nodes_are_progress_and_shown_as_the_reason() -> None:
    situation = awaiting_node(autoscaler("TriggeredScaleUp", TRIGGERED))
    found = told(situation)
    assert (found.code, found.verdict, found.patience) == ("LWS-E108", Verdict.PROGRESSING, timedelta(minutes=15))
    text = "cluster-autoscaler is adding nodes (gpu-pool-a 0 to 2 of at most 8, 40s ago)"
    assert found.sentence == f"{text} for pod web-0"
    assert why(situation).startswith(f"{text}: 0/2 nodes are available")


def test_added_nodes_are_stuck_after_the_patience() -> None:
    situation = awaiting_node(autoscaler("TriggeredScaleUp", TRIGGERED))
    assert told(situation, 850).verdict is Verdict.PROGRESSING
    late = told(situation, 900)
    assert (late.code, late.verdict, late.patience) == ("LWS-E035", Verdict.STUCK, None)
    assert "cluster-autoscaler started to add nodes (gpu-pool-a 0 to 2 of at most 8) 15m ago" in late.sentence
    hasty = replace(situation, commands=Commands(node_patience=timedelta(seconds=30)))
    assert told(hasty).code == "LWS-E035"


REFUSALS = {
    "pod didn't trigger scale-up: 1 max node group size reached, 2 Insufficient nvidia.com/gpu": "increase the maximum size of a node group",
    "pod didn't trigger scale-up: 3 Insufficient nvidia.com/gpu": "add a node group with a larger machine type",
    "pod didn't trigger scale-up: 2 node(s) had untolerated taint(s)": "add a toleration for the taint",
    "pod didn't trigger scale-up: 1 in backoff after failed scale-up": "the cloud provider rejected a node",
    "pod didn't trigger scale-up: 1 max cluster cpu, memory limit reached": "increase the limits of cluster-autoscaler",
    "pod didn't trigger scale-up: ": "read the log of cluster-autoscaler",
    "pod didn't trigger scale-up: 2 node(s) didn't match Pod's node affinity/selector": "allow a suitable machine type",
}
FAILURES = {
    "Node scale up in zones us-x1-a associated with this pod failed: GCE out of resources. Pod is at risk of not being scheduled.": "allow other zones",
    "Node scale up in zones us-x1-a associated with this pod failed: GCE quota exceeded. Pod is at risk of not being scheduled.": "increase the quota of the cloud",
    "Node scale up in zones us-x1-a associated with this pod failed: IP space exhausted. Pod is at risk of not being scheduled.": "pod address range of the node pool",
}


@pytest.mark.parametrize("message", REFUSALS)
def test_refusal_of_the_autoscaler_is_named_with_its_remedy(message: str) -> None:
    found = told(awaiting_node(autoscaler("NotTriggerScaleUp", message)))
    assert (found.code, found.verdict) == ("LWS-E035", Verdict.STUCK)
    assert "; cluster-autoscaler did not add a node: " in found.sentence
    assert REFUSALS[message] in found.steps[0]


@pytest.mark.parametrize("message", FAILURES)
def test_failed_scale_up_ends_the_progress_of_an_earlier_one(message: str) -> None:
    failure = event("Pod", "web-0", "FailedScaleUp", message, seconds=20) | {
        "source": {"component": "cluster-autoscaler"}
    }
    found = told(awaiting_node(autoscaler("TriggeredScaleUp", TRIGGERED, 100), failure))
    assert found.verdict is Verdict.STUCK
    assert FAILURES[message] in found.steps[0]


def test_scale_up_after_a_refusal_is_progress() -> None:
    refused = autoscaler("NotTriggerScaleUp", "pod didn't trigger scale-up: 2 max node group size reached", 400)
    assert told(awaiting_node(refused, autoscaler("TriggeredScaleUp", TRIGGERED))).code == "LWS-E108"


def test_events_of_a_former_pod_are_not_read() -> None:
    former = autoscaler("TriggeredScaleUp", TRIGGERED)
    former["involvedObject"]["uid"] = "another"
    assert told(awaiting_node(former)).code == "LWS-E035"


@pytest.mark.parametrize("component", ["karpenter", "eks-auto-mode/compute"])
def test_nomination_is_progress_with_the_state_of_its_node_claim(component: str) -> None:
    event = normal("Nominated", "Pod should schedule on: nodeclaim/gpu-x7k2p", seconds=30, component=component)
    claim = {
        "metadata": {"name": "gpu-x7k2p"},
        "status": {"conditions": [{"type": "Launched", "status": "True"}, {"type": "Registered", "status": "Unknown"}]},
    }
    found = told(awaiting_node(event, objects={NODE_CLAIMS: [claim]}))
    assert found.code == "LWS-E108"
    assert found.sentence == f"{component} is adding nodes (NodeClaim gpu-x7k2p, 30s ago) for pod web-0"
    assert "NodeClaim gpu-x7k2p: not Registered yet" in found.evidence


DECLINES = {
    'all available instance types exceed limits for nodepool "gpu"': "increase spec.limits of NodePool gpu",
    'no instance type has enough resources, requirements=karpenter.sh/nodepool In [standard], resources={"nvidia.com/gpu":"8"}': "allow a suitable machine type",
    "did not tolerate taint (taint=team=a:NoSchedule)": "add a toleration for the taint",
    'incompatible with nodepool "gpu", daemonset overhead={"cpu":"1"}, incompatible requirements, label "team" does not have known values': "allow a suitable machine type",
}


@pytest.mark.parametrize("reason", DECLINES)
def test_refusal_of_karpenter_is_named_with_its_remedy(reason: str) -> None:
    refusal = event("Pod", "web-0", "FailedScheduling", f"Failed to schedule pod, {reason}", seconds=20)
    found = told(awaiting_node(karpenter("Nominated", "Pod should schedule on: nodeclaim/a", 200), refusal))
    assert (found.code, found.verdict) == ("LWS-E035", Verdict.STUCK)
    assert "did not add a node: " in found.sentence
    assert DECLINES[reason] in found.steps[0]


def test_event_of_kube_scheduler_is_not_an_autoscalers_answer() -> None:
    scheduler = event(
        "Pod", "web-0", "FailedScheduling", "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.", seconds=2
    )
    assert (
        told(awaiting_node(karpenter("Nominated", "Pod should schedule on: nodeclaim/a"), scheduler)).code == "LWS-E108"
    )


def test_long_pull_shows_its_duration_and_the_last_one() -> None:
    pulling = normal("Pulling", 'Pulling image "registry.example.com/vllm:0.11"', seconds=500, component="kubelet")
    ended = 'Successfully pulled image "registry.example.com/vllm:0.11" in 3m7.5s (4m1s including waiting). Image size: 9 bytes.'
    situation = creating(pulling, normal("Pulled", ended, seconds=5000, name="web-1"))
    found = told(situation)
    assert (found.code, found.verdict) == ("LWS-E109", Verdict.PROGRESSING)
    text = "pulling image registry.example.com/vllm:0.11 to node node-0 for 8m20s; the last pull took 3m7s"
    assert why(situation) == text
    assert text in found.sentence
    assert told(situation, 1800).verdict is Verdict.STUCK


def test_completed_pull_is_not_a_cause() -> None:
    events = [
        normal("Pulling", 'Pulling image "a:1"', seconds=500),
        normal("Pulled", 'Successfully pulled image "a:1" in 2s (2s including waiting).', seconds=480),
    ]
    assert told(creating(*events, made=500)).code != "LWS-E109"
