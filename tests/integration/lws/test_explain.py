"""`lws explain` on both clusters: the fault is really made, and named by its code within seconds of being observable."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from tests.integration.clusters.cluster import ZONE
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import Space
from tests.integration.clusters.state import State
from tests.integration.lws.test_commands import session_of

from kuberuntime import timeouts
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NAMESPACES, NODES, PODS, SERVICES, VALIDATING_WEBHOOK_CONFIGURATIONS
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.cli.commands.explain import explain
from leaderworkerset.cli.targets import parse
from leaderworkerset.diagnosis.finding import Diagnosis, Verdict
from leaderworkerset.diagnosis.observed import LIMIT_RANGES, RESOURCE_QUOTAS

NAMED_WITHIN: Final = 5.0
"""Seconds after the fault can be seen."""

HELD: Final = "tests.example.com/held"


async def diagnosis(space: Space, target: str = "web") -> Diagnosis:
    """Return what `lws explain` says."""
    (told,) = await explain(session_of(space), parse(target))
    return told


async def named(space: Space, code: str, target: str = "web", *, seconds: float = NAMED_WITHIN) -> Diagnosis:
    """Wait until `lws explain` names the code."""
    told = await diagnosis(space, target)
    try:
        async with timeouts.within(seconds):
            while told.code != code:
                await asyncio.sleep(0.1)
                told = await diagnosis(space, target)
    except TimeoutError:
        raise AssertionError(f"not {code}, but {told}") from None
    return told


def warned(words: str) -> Any:
    """Return the expectation that a Warning event has these words."""

    def expectation(state: State) -> None:
        notes = [str(one.get("note")) for one in state.events.values() if one.get("type") == "Warning"]
        assert any(words in note for note in notes), notes

    return expectation


def unschedulable(words: str, count: int = 1) -> Any:
    """Return the expectation that so many pods are said to fit nowhere for a reason with these words."""

    def expectation(state: State) -> None:
        told = [meta.find_condition(pod, "PodScheduled") or {} for pod in state.pods.values()]
        found = [one for one in told if one.get("status") == "False" and words in str(one.get("message"))]
        assert len(found) >= count, told

    return expectation


def of_kubernetes(space: Space) -> None:
    """Leave out a test of what the embedded API server does not enforce."""
    if space.cluster.name == "embedded":
        pytest.skip("the embedded API server has no such admission")


def template(**fields: Any) -> JSONObject:
    """Return the templates of a group whose pods have these fields."""
    return {"workerTemplate": pod_template(**fields)}


def asking(**requests: str) -> JSONObject:
    """Return the templates of a group whose containers request so much."""
    found = pod_template()
    amounts = {name.replace("__", "/").replace("_", "."): amount for name, amount in requests.items()}
    found["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    return {"workerTemplate": found}


async def test_a_healthy_set_its_groups_and_ranks_are_told_so(space: Space) -> None:
    await space.create(lws(replicas=2, size=2))
    await space.settled()
    for target in ("web", "web/1", "web/1/1"):
        told = await diagnosis(space, target)
        assert (told.verdict, told.code) == (Verdict.HEALTHY, ""), told
    assert (await diagnosis(space)).sentence == "2 of 2 groups ready, all of the newest revision"


async def test_a_quota_is_named_with_what_is_missing(space: Space) -> None:
    of_kubernetes(space)
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small"},
        "spec": {"hard": {"pods": "1"}},
    }
    await space.create(quota, RESOURCE_QUOTAS)
    await space.until(lambda state: None)
    await space.eventually(lambda: space.get(RESOURCE_QUOTAS, "small"), lambda one: bool(meta.status(one).get("hard")))
    await space.create(lws(replicas=1, size=3))
    await space.until(warned("exceeded quota"))
    told = await named(space, "LWS-E020")
    assert told.verdict is Verdict.STUCK
    assert "ResourceQuota small has no room for pod web-0-" in told.sentence
    assert "it requests pods=1, pods=1 of pods=1 is used" in told.sentence


async def test_a_limit_range_is_named(space: Space) -> None:
    of_kubernetes(space)
    limits = {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}
    await space.create(
        {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "max"}, "spec": limits}, LIMIT_RANGES
    )
    await space.create(lws(replicas=1, size=2, template=asking(cpu="2")))
    await space.until(warned("maximum cpu usage"))
    assert "maximum cpu usage per Container is 1" in (await named(space, "LWS-E022")).sentence


async def test_pod_security_is_named(space: Space) -> None:
    of_kubernetes(space)
    restricted = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    await space.client.patch(NAMESPACES, ObjectKey("", space.namespace), restricted, kind="merge")
    await space.create(lws(replicas=1, size=2))
    await space.until(warned("violates PodSecurity"))
    assert "Pod Security level restricted:" in (await named(space, "LWS-E023")).sentence


async def test_a_missing_service_account_is_named(space: Space) -> None:
    of_kubernetes(space)
    await space.create(lws(replicas=1, size=2, template=template(serviceAccountName="nobody")))
    await space.until(warned('serviceaccount "nobody" not found'))
    assert "service account nobody does not exist" in (await named(space, "LWS-E025")).sentence


async def test_a_missing_priority_class_is_named(space: Space) -> None:
    await space.create(lws(replicas=1, size=2, template=template(priorityClassName="urgent")))
    await space.until(warned("urgent"))
    told = await named(space, "LWS-E026")
    assert told.sentence == "PriorityClass urgent does not exist, so pod web-0 cannot be created"


@asynccontextmanager
async def unreachable_webhook(space: Space) -> AsyncIterator[None]:
    """Configure a webhook for the pods of the namespace that nobody serves."""
    name = f"unreachable-{space.namespace}"
    hook = {
        "name": "unreachable.example.com",
        "clientConfig": {"url": "https://127.0.0.1:9/"},
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": space.namespace}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 2,
    }
    configuration = {
        "apiVersion": VALIDATING_WEBHOOK_CONFIGURATIONS.api_version,
        "kind": VALIDATING_WEBHOOK_CONFIGURATIONS.kind,
        "metadata": {"name": name},
        "webhooks": [hook],
    }
    await space.client.create(VALIDATING_WEBHOOK_CONFIGURATIONS, configuration)
    try:
        yield
    finally:
        await space.client.delete(VALIDATING_WEBHOOK_CONFIGURATIONS, ObjectKey("", name))


async def test_a_webhook_that_cannot_be_reached_is_named(space: Space) -> None:
    async with unreachable_webhook(space):
        await space.create(lws(replicas=1, size=2))
        await space.until(warned("unreachable.example.com"))
        told = await named(space, "LWS-E008")
    assert told.sentence == "webhook unreachable.example.com cannot be reached, so pod web-0 cannot be created"


async def test_an_invalid_template_is_named(space: Space) -> None:
    found = pod_template()
    found["spec"]["containers"][0]["ports"] = [{"containerPort": 99999}]
    await space.create(lws(replicas=1, size=2, template={"workerTemplate": found}))
    await space.until(warned("99999"))
    assert "must be between 1 and 65535" in (await named(space, "LWS-E012")).sentence


@pytest.mark.parametrize(
    ("code", "requests", "words"),
    [
        ("LWS-E035", {"nvidia_com__gpu": "8"}, "no node has enough nvidia.com/gpu"),
        ("LWS-E036", {"cpu": "40"}, "it requests 40, the largest node has 32 (8 too little)"),
        ("LWS-E037", {"memory": "300Gi"}, "it requests 300Gi, the largest node has 256Gi (44Gi too little)"),
    ],
    ids=["gpu", "cpu", "memory"],
)
async def test_what_nodes_have_too_little_of_is_named(
    space: Space, code: str, requests: dict[str, str], words: str
) -> None:
    await space.create(lws(replicas=1, size=2, template=asking(**requests)))
    await space.until(unschedulable("Insufficient"))
    told = await named(space, code)
    assert words in told.sentence
    assert told.subject is not None
    assert told.subject.name == "web-0"


async def test_labels_that_no_node_has_are_named(space: Space) -> None:
    await space.create(lws(replicas=1, size=2, template=template(nodeSelector={"gpu": "b300"})))
    await space.until(unschedulable("affinity/selector"))
    assert "labels that pod web-0 asks for" in (await named(space, "LWS-E040")).sentence


async def test_a_taint_is_named(space: Space) -> None:
    node, taint = "node-63", {"key": "tests.example.com/kept", "value": "free", "effect": "NoSchedule"}
    await space.client.patch(NODES, ObjectKey("", node), {"spec": {"taints": [taint]}}, kind="merge")
    try:
        chosen = template(nodeSelector={"kubernetes.io/hostname": node})
        await space.create(lws(replicas=1, size=1, template=chosen))
        await space.until(unschedulable("taint"))
        told = await named(space, "LWS-E039")
    finally:
        await space.client.patch(NODES, ObjectKey("", node), {"spec": {"taints": None}}, kind="merge")
    assert told.sentence.startswith("nodes have taints that pod web-0 does not tolerate: {tests.example.com/kept: ")


async def test_groups_that_hold_the_topology_domains_are_named(space: Space) -> None:
    await space.create(lws(replicas=5, size=1, annotations={labels.EXCLUSIVE_TOPOLOGY: ZONE}))
    await space.until(unschedulable("affinity"))

    def four_are_placed(state: State) -> None:
        assert sum(bool(meta.spec(pod).get("nodeName")) for pod in state.pods.values()) == 4

    await space.until(four_are_placed)
    told = await named(space, "LWS-E041")
    assert "no domain of zone is free" in told.sentence
    assert all(f"z{zone}: web/" in told.sentence for zone in range(4)), told.sentence


async def test_a_scheduler_that_does_not_exist_is_named(space: Space) -> None:
    await space.create(lws(replicas=1, size=1, template=template(schedulerName="volcanoo")))
    await space.until(lambda state: state.pods["web-0"])  # type: ignore[arg-type]  # KeyError until then
    told = await named(space, "LWS-E033", seconds=8)  # a scheduler has three seconds to say something
    assert "no scheduler called volcanoo acts on pod web-0" in told.sentence


async def test_a_scheduling_gate_is_named(space: Space) -> None:
    await space.create(lws(replicas=1, size=1, template=template(schedulingGates=[{"name": HELD}])))
    await space.until(lambda state: state.pods["web-0"])  # type: ignore[arg-type]  # likewise
    assert f"scheduling gate {HELD}" in (await named(space, "LWS-E031")).sentence


async def test_a_claim_without_a_storage_class_is_named(space: Space) -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "no-such-class",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    mounted = pod_template()
    mounted["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    parts = {"workerTemplate": mounted, "volumeClaimTemplates": [claim]}
    await space.create(lws(replicas=1, size=1, template=parts))
    await space.until(unschedulable("PersistentVolumeClaim"))
    told = await named(space, "LWS-E044")
    assert told.sentence == "claim data-web-0 of pod web-0 is not bound: there is no StorageClass no-such-class"


async def test_a_claim_that_does_not_exist_is_named(space: Space) -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "models"}}]
    await space.create(lws(replicas=1, size=1, template=template(volumes=volumes)))
    await space.until(unschedulable("models"))
    assert "claim models of pod web-0 not found" in (await named(space, "LWS-E046")).sentence


async def test_a_node_that_is_not_ready_is_named(space: Space) -> None:
    await space.create(lws(replicas=1, size=1, template=template(nodeSelector={"kubernetes.io/hostname": "node-59"})))
    await space.settled()
    async with space.cluster.hung_node(space.client, "node-59", "Unknown"):
        await space.delete("web-0", PODS)
        told = await named(space, "LWS-E051")
    assert "node node-59 of pod web-0 is not ready: Ready is Unknown" in told.sentence


async def test_a_finalizer_of_a_pod_is_named(space: Space) -> None:
    await space.create(lws(replicas=1, size=2))
    await space.settled()
    await space.patch({"metadata": {"finalizers": [HELD]}}, "web-0-1", resource=PODS)
    await space.delete("web-0-1", PODS)
    try:

        def is_late(state: State) -> None:
            assert meta.is_deleting(state.pods["web-0-1"])

        await space.until(is_late)
        told = await named(space, "LWS-E052", "web/0/1", seconds=NAMED_WITHIN + 2)  # its grace period is a second
    finally:
        await space.patch({"metadata": {"finalizers": None}}, "web-0-1", resource=PODS)
    assert f"pod web-0-1 is terminating, and finalizer {HELD} holds it" in told.sentence


async def test_a_finalizer_of_the_set_is_named(space: Space) -> None:
    await space.create(lws(replicas=1, size=1))
    await space.settled()
    await space.patch({"metadata": {"finalizers": [HELD]}})
    await space.delete("web")
    try:
        assert f"finalizer {HELD} holds it" in (await named(space, "LWS-E001")).sentence
    finally:
        await space.patch({"metadata": {"finalizers": None}})


async def test_a_readiness_gate_is_named(space: Space) -> None:
    await space.create(lws(replicas=1, size=1, gated=True))

    def runs(state: State) -> None:
        assert meta.is_condition_true(state.pods["web-0"], "ContainersReady")

    await space.until(runs)
    told = await named(space, "LWS-E074")
    assert told.sentence.endswith("of pod web-0 is not open, though its containers are ready")


async def test_a_service_that_hides_ranks_that_start_is_named(space: Space) -> None:
    await space.create(lws(replicas=1, size=2, gated=True))

    def runs(state: State) -> None:
        assert meta.is_condition_true(state.pods["web-0"], "ContainersReady")
        assert state.services["web"]

    await space.until(runs)
    await space.patch({"spec": {"publishNotReadyAddresses": False}}, resource=SERVICES)
    told = await named(space, "LWS-E083")
    assert "Service web publishes only ranks that are ready" in told.sentence


async def test_a_partition_is_named(space: Space) -> None:
    await space.create(lws(replicas=3, size=1))
    await space.settled()
    await space.edit(
        rolloutStrategy={"type": "RollingUpdate", "rollingUpdateConfiguration": {"partition": 2}},
        leaderWorkerTemplate={"workerTemplate": pod_template("app:2")},
    )

    def is_held(state: State) -> None:
        found = state.leaderworkersets["web"]
        assert meta.status(found).get("updatedReplicas") == 1
        assert meta.status(found).get("readyReplicas") == 3

    await space.until(is_held)
    told = await named(space, "LWS-E085")
    assert told.verdict is Verdict.PROGRESSING
    assert told.sentence == "partition 2 holds the rollout: 1 of 3 groups updated"


async def test_a_manager_that_does_not_act_is_named(space: Space) -> None:
    await space.create(lws(replicas=1, size=1))
    await space.settled()
    await space.manager.stop()
    try:
        await space.patch({"spec": {"replicas": 2}})
        told = await named(space, "LWS-E005", seconds=10 + NAMED_WITHIN)  # a controller has ten seconds to act
    finally:
        await space.manager.start()
    assert "no manager acts: the newest spec of web is not acted on for" in told.sentence
    assert await space.get(LEADERWORKERSETS, "web")
