"""Tests causes that are derived from taints, labels, quotas, Secrets and corrections."""

from datetime import timedelta

import pytest
from msgspec.structs import replace
from tests.explanations.builders import (
    NOW,
    ago,
    event,
    lws,
    node,
    observed,
    part,
    pending,
    placed,
    pod,
    ready,
    refused,
    waiting,
)
from tests.explanations.situations import GPUS

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CORE_EVENTS, NODES
from leaderworkerset.api import labels
from leaderworkerset.core import decisionevents
from leaderworkerset.core.gang.volcano import GROUP_NAME
from lwsctl.diagnosis.causes.featuregates import disabled_gates
from lwsctl.diagnosis.diagnose import diagnose
from lwsctl.diagnosis.observed import Observed
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.views.selection import Selection

REPELLED = "0/2 nodes are available: 2 node(s) had untolerated taint(s)."
PEOPLE = {"key": "team", "value": "a", "effect": "NoSchedule"}


def told(situation: Observed) -> Diagnosis:
    return diagnose(situation, Selection("web"))


def taint(key: str) -> JSONObject:
    return {"key": key, "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("key", "words", "step"),
    [
        ("node.kubernetes.io/unreachable", "node node-0 does not report", "repair or restart node node-0"),
        ("node.kubernetes.io/not-ready", "node node-0 is not ready", "repair or restart node node-0"),
        ("node.kubernetes.io/disk-pressure", "node node-0 is low on disk space", "free disk space on node node-0"),
        ("node.kubernetes.io/memory-pressure", "is low on memory", "free memory"),
        ("node.kubernetes.io/pid-pressure", "has too many processes", "stop processes"),
        ("node.kubernetes.io/unschedulable", "node node-0 is cordoned", "kubectl uncordon node-0"),
        (labels.MOVING, "is reserved by `lws move`", "wait until the move is complete"),
        (
            "ToBeDeletedByClusterAutoscaler",
            "being removed by cluster-autoscaler",
            "wait until a different node is added",
        ),
        ("karpenter.sh/disrupted", "being replaced by Karpenter", "wait for its replacement"),
    ],
)
def test_taint_of_a_component_is_named_by_what_it_means(key: str, words: str, step: str) -> None:
    found = told(pending(REPELLED, objects={NODES: [node(taints=[taint(key)]), node("node-1", taints=[PEOPLE])]}))
    assert found.code == "LWS-E118"
    assert words in found.sentence
    assert step in found.steps[0]
    assert "toleration" not in " ".join(found.steps)


def test_taints_of_people_come_before_those_of_conditions() -> None:
    both = node(taints=[PEOPLE, taint("node.kubernetes.io/disk-pressure")])
    found = told(pending(REPELLED, objects={NODES: [both]}))
    assert found.code == "LWS-E039"
    assert found.sentence.endswith(": team=a:NoSchedule")


def test_node_that_would_have_enough_is_closed_by_its_condition() -> None:
    big = node(allocatable={"nvidia.com/gpu": "8"}, taints=[taint("node.kubernetes.io/unreachable")])
    message = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint(s)."
    found = told(pending(message, spec=GPUS, objects={NODES: [big]}, running=[]))
    assert found.code == "LWS-E035"
    assert "node node-0 does not report, but would have enough" in found.sentence
    assert "tolerate" not in " ".join(found.steps)


def test_topology_key_without_nodes_is_named() -> None:
    of = lws(2, 2, metadata={"annotations": {labels.EXCLUSIVE_TOPOLOGY: "cloud.google.com/gke-nodepool"}})
    message = "0/4 nodes are available: 4 node(s) didn't match pod affinity rules."
    found = told(pending(message, of=of, objects={NODES: [node(labels={"zone": "a"})]}))
    assert found.code == "LWS-E041"
    assert "no node has the label cloud.google.com/gke-nodepool that annotation" in found.sentence
    assert found.steps[0].endswith("kubectl label nodes NODE cloud.google.com/gke-nodepool=VALUE")
    assert "reduce" not in " ".join(found.steps)


@pytest.mark.parametrize(
    "spec",
    [
        {"topologySpreadConstraints": [{"topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}]},
        {
            "affinity": {
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "rack"}]}
            }
        },
    ],
    ids=["spread", "anti-affinity"],
)
def test_constraint_with_an_unknown_key_is_named(spec: JSONObject) -> None:
    message = (
        "0/4 nodes are available: 4 node(s) didn't match pod topology spread constraints (missing required label)."
    )
    found = told(pending(message, spec=spec, objects={NODES: [node(labels={"zone": "a"})]}))
    assert found.code == "LWS-E042"
    assert "no node has the label rack that topologyKey in the template of web requires" in found.sentence
    known = told(pending(message, spec=spec, objects={NODES: [node(labels={"rack": "a"})]}))
    assert known.sentence.startswith("no node satisfies the pod topology spread constraints")


def test_quota_of_statefulsets_is_not_room_for_a_pod() -> None:
    text = (
        'statefulsets.apps "web" is forbidden: exceeded quota: few, requested: count/statefulsets.apps=1, '
        "used: count/statefulsets.apps=1, limited: count/statefulsets.apps=1"
    )
    found = told(refused(text))
    assert found.code == "LWS-E020"
    assert found.sentence.startswith("ResourceQuota few does not allow statefulset web, which pod web-0 needs")
    assert found.steps[1] == "increase the quota, or delete other statefulsets in the namespace"


def test_missing_pull_secret_is_the_cause_of_a_denial() -> None:
    notice = "Unable to retrieve some image pull secrets (regcred); attempting to pull the image may not succeed."
    for denial in ("pull access denied, repository does not exist", "registry.example.com/vllm:1: not found"):
        found = told(waiting("ErrImagePull", denial, [("FailedToRetrieveImagePullSecret", notice)]))
        assert found.code == "LWS-E061"
        assert found.sentence.startswith("imagePullSecret regcred of pod web-0 does not exist")
        assert "create secret docker-registry regcred" in found.steps[0]
    unreachable = "dial tcp: lookup registry.example.com: no such host"
    assert told(waiting("ErrImagePull", unreachable, [("FailedToRetrieveImagePullSecret", notice)])).code == "LWS-E059"


def test_event_of_before_the_correction_is_not_the_cause() -> None:
    """Events remain after a field is corrected."""
    warning = event("LeaderWorkerSet", "web", decisionevents.unreadable.reason, "bad field", uid="set", seconds=100)
    for changed, code in ((200, "LWS-E056"), (50, "")):
        entry = {"manager": "kubectl", "operation": "Update", "time": ago(changed)}
        of = lws(1, 1, metadata={"managedFields": [entry]})
        found = told(observed([placed()], {CORE_EVENTS: [warning]}, of=of))
        assert (found.code == "LWS-E056") == (code == "LWS-E056"), changed


def test_group_of_volcano_does_not_blame_kubernetes() -> None:
    marks = {labels.WORKLOAD_AWARE_SCHEDULING: "replica", labels.WORKLOAD_NAME: "web-0-e1"}
    for other in (
        {"metadata": {"annotations": marks | {GROUP_NAME: "g"}}},
        {"metadata": {"annotations": marks}, "spec": {"schedulerName": "volcano"}},
    ):
        assert not [*disabled_gates([], [pod(**other)], NOW)]


def test_rank_on_a_node_that_is_not_ready_shows_its_node() -> None:
    lost = event("Pod", "web-0", "NodeNotReady", "Node is not ready", seconds=30)
    running = {"name": "main", "ready": True, "state": {"running": {"startedAt": ago(200)}}}
    situation = observed([placed(status={"containerStatuses": [running]}), ready(0, 1)], {CORE_EVENTS: [lost]})
    assert situation.view.groups[0].ranks[0].why == "node node-0 is not ready"
    assert replace(situation, now=NOW + timedelta(hours=1)).view == situation.view


def test_advice_about_a_generated_set_names_its_owner() -> None:
    of = part("decode")
    found = diagnose(
        pending("0/3 nodes are available: 3 node(s) had untolerated taint(s).", of=of),
        Selection(of["metadata"]["name"]),
    )
    assert "the template of role decode in DisaggregatedSet web" in found.steps[0]
