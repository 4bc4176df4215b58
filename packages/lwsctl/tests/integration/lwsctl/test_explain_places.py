"""Tests `lws explain` for unscheduled pods on both clusters.

Each fault is really created, and explain reports its code.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from testkit.clusters.cluster import ZONE
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import shows
from tests.integration.lwsctl.explanations import HELD, NAMED_WITHIN, asking, named, remedy, template, unschedulable

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NODES, PODS
from leaderworkerset.api import labels


@pytest.mark.parametrize(
    ("code", "requests", "words"),
    [
        ("LWS-E035", {"nvidia_com__gpu": "8"}, "no node has enough nvidia.com/gpu"),
        ("LWS-E036", {"cpu": "40"}, "it requests 40, and the largest node has 32 (8 missing)"),
        ("LWS-E037", {"memory": "300Gi"}, "it requests 300Gi, and the largest node has 256Gi (44Gi missing)"),
    ],
    ids=["gpu", "cpu", "memory"],
)
async def test_explain_names_the_resource_that_nodes_lack(
    space: LiveScenario, code: str, requests: dict[str, str], words: str
) -> None:
    await space.create(lws(replicas=1, size=2, template=asking(**requests)))
    await space.until(unschedulable("Insufficient"))
    told = await named(space, code)
    assert words in told.sentence
    assert told.subject is not None
    assert told.subject.name == "web-0"


async def test_explain_names_labels_that_no_node_has(space: LiveScenario) -> None:
    await space.create(lws(replicas=1, size=2, template=template(nodeSelector={"gpu": "b300"})))
    await space.until(unschedulable("affinity/selector"))
    assert "labels that pod web-0 requires" in (await named(space, "LWS-E040")).sentence


@asynccontextmanager
async def node_with(space: LiveScenario, **spec: Any) -> AsyncIterator[JSONObject]:
    """Set these spec fields on a node. Yield the templates of pods that fit only on this node."""
    node = "node-63"

    async def write(fields: JSONObject) -> None:
        await space.client.patch(NODES, ObjectKey("", node), {"spec": fields}, kind="merge")

    await write(spec)
    try:
        yield template(nodeSelector={"kubernetes.io/hostname": node})
    finally:
        await write(dict.fromkeys(spec))


async def test_explain_names_a_taint(space: LiveScenario) -> None:
    taint = {"key": "tests.example.com/kept", "value": "free", "effect": "NoSchedule"}
    async with node_with(space, taints=[taint]) as chosen:
        await space.create(lws(replicas=1, size=1, template=chosen))
        await space.until(unschedulable("taint"))
        told = await named(space, "LWS-E039")
    assert told.sentence == "nodes have taints that pod web-0 does not tolerate: tests.example.com/kept=free:NoSchedule"


async def test_explain_names_a_cordoned_node(space: LiveScenario) -> None:
    async with node_with(space, unschedulable=True) as chosen:
        await space.create(lws(replicas=1, size=1, template=chosen))
        await space.until(unschedulable("were unschedulable"))
        told = await named(space, "LWS-E043")
    assert told.sentence == "no suitable node is schedulable for web-0"


async def test_explain_names_groups_that_occupy_topology_domains(space: LiveScenario) -> None:
    await space.create(lws(replicas=5, size=1, annotations={labels.EXCLUSIVE_TOPOLOGY: ZONE}))
    await space.until(unschedulable("affinity"))
    await space.until(shows(lambda state: sum(bool(meta.spec(pod).get("nodeName")) for pod in state.pods.values()), 4))
    told = await named(space, "LWS-E041")
    assert "no domain of zone is free" in told.sentence
    assert all(f"z{zone} by web/" in told.sentence for zone in range(4)), told.sentence


async def test_explain_names_an_unknown_scheduler(space: LiveScenario) -> None:
    await space.create(lws(replicas=1, size=1, template=template(schedulerName="volcanoo")))
    await space.until(lambda state: state.pods["web-0"])  # type: ignore[arg-type]  # KeyError until then
    told = await named(space, "LWS-E033", seconds=5 + NAMED_WITHIN)  # a scheduler has 5 s to report a reason
    assert "no scheduler named volcanoo has processed pod web-0" in told.sentence


async def test_explain_names_a_scheduling_gate(space: LiveScenario) -> None:
    await space.create(lws(replicas=1, size=1, template=template(schedulingGates=[{"name": HELD}])))
    await space.until(lambda state: state.pods["web-0"])  # type: ignore[arg-type]  # likewise
    assert f"scheduling gate {HELD}" in (await named(space, "LWS-E031")).sentence


@remedy("LWS-E044")
async def test_explain_names_a_claim_without_a_storage_class(space: LiveScenario, code: str) -> None:
    late = f"late-{space.namespace}"
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": late,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    mounted = pod_template()
    mounted["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    parts = {"workerTemplate": mounted, "volumeClaimTemplates": [claim]}
    await space.create(lws(replicas=1, size=1, template=parts))
    await space.until(unschedulable("PersistentVolumeClaim"))
    told = await named(space, code)
    assert told.sentence == f"claim data-web-0 of pod web-0 is not bound: StorageClass {late} does not exist"
    assert told.steps[0].startswith("create the StorageClass or a volume for claim data-web-0")
    await space.provide_volumes(late, 1)
    await space.settled()


async def test_explain_names_a_missing_claim(space: LiveScenario) -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "models"}}]
    await space.create(lws(replicas=1, size=1, template=template(volumes=volumes)))
    await space.until(unschedulable("models"))
    assert "claim models of pod web-0 not found" in (await named(space, "LWS-E046")).sentence


async def test_explain_names_a_node_that_is_not_ready(space: LiveScenario) -> None:
    await space.bring_up(lws(replicas=1, size=1, template=template(nodeSelector={"kubernetes.io/hostname": "node-59"})))
    async with space.cluster.hung_node(space.client, "node-59", "Unknown"):
        await space.delete("web-0", PODS)
        told = await named(space, "LWS-E051")
    assert "node node-59 of pod web-0 is not ready: Ready is Unknown" in told.sentence


def beside(words: str) -> JSONObject:
    """Return the affinity of pods that must run in the same zone as other pods."""
    terms = [{"labelSelector": {"matchLabels": {"app": words}}, "topologyKey": ZONE}]
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


async def test_explain_names_an_affinity_that_no_pod_satisfies(space: LiveScenario) -> None:
    await space.create(lws(replicas=1, size=1, template=template(affinity=beside("no-such-cache"))))
    await space.until(unschedulable("affinity"))
    assert "pod web-0" in (await named(space, "LWS-E042")).sentence


async def test_explain_names_an_occupied_host_port(space: LiveScenario) -> None:
    found = pod_template(nodeSelector={"kubernetes.io/hostname": "node-61"})
    found["spec"]["containers"][0]["ports"] = [{"containerPort": 8080, "hostPort": 38080}]
    await space.create(lws(replicas=2, size=1, template={"workerTemplate": found}))
    await space.until(unschedulable("free ports"))
    assert "pod web-" in (await named(space, "LWS-E047")).sentence


async def test_explain_names_insufficient_ephemeral_storage(space: LiveScenario) -> None:
    found = pod_template()
    found["spec"]["containers"][0]["resources"] = {"requests": {"ephemeral-storage": "900Ti"}}
    await space.create(lws(replicas=1, size=1, template={"workerTemplate": found}))
    await space.until(unschedulable("Insufficient ephemeral-storage"))
    assert "ephemeral-storage" in (await named(space, "LWS-E048")).sentence
