"""Tests autoscalers of groups and of Deployments, which use the simulated usage of pods."""

import asyncio
from typing import Any

import pytest
from tests.simulation.cluster import NAMESPACE, Settings, SimulatedCluster, simulated
from tests.simulation.workloads import groups, template

from kuberuntime.objects import meta, quantity
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import (
    DEPLOYMENTS,
    EVENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    NODE_METRICS,
    POD_METRICS,
    STATEFULSETS,
    Resource,
)
from leaderworkerset.api.resources import LEADERWORKERSETS
from localkube.kubelet.processes.runner import ContainerSpec

HALF = {"type": "Utilization", "averageUtilization": 50}
LABELS = {"app": "router"}
PERIODS = 45.0
"""The time in seconds in which an autoscaler makes two or three decisions."""


def autoscaler(target: Resource, wanted: JSONObject = HALF, **spec: Any) -> JSONObject:
    reference = {"apiVersion": target.api_version, "kind": target.kind, "name": "web"}
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": wanted}}
    return {
        "apiVersion": HORIZONTAL_POD_AUTOSCALERS.api_version,
        "kind": HORIZONTAL_POD_AUTOSCALERS.kind,
        "metadata": {"name": "web", "namespace": NAMESPACE},
        "spec": {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": 6, "metrics": [cpu]} | spec,
    }


def requesting(cores: str) -> JSONObject:
    """Return a template whose pods request the given number of CPUs."""
    found = template()
    found["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cores}}
    return found


def served(replicas: int = 1) -> JSONObject:
    """Return a LeaderWorkerSet with groups of two pods that request one CPU each."""
    found = groups(replicas=replicas, size=2)
    found["spec"]["leaderWorkerTemplate"] |= {"workerTemplate": requesting("1")}
    return found


def workload(resource: Resource, cores: str = "1") -> JSONObject:
    pods = {"metadata": {"labels": LABELS}, **requesting(cores)}
    given = {"serviceName": "web"} if resource is STATEFULSETS else {}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": "web", "namespace": NAMESPACE},
        "spec": {"replicas": 2, "selector": {"matchLabels": LABELS}, "template": pods} | given,
    }


def is_leader(spec: ContainerSpec) -> bool:
    return spec.env["LWS_WORKER_INDEX"] == "0"


async def autoscale(world: SimulatedCluster, scaler: JSONObject) -> None:
    await world.client.create(HORIZONTAL_POD_AUTOSCALERS, scaler)


async def follow(world: SimulatedCluster, wanted: int, resource: Resource = LEADERWORKERSETS) -> float:
    """Wait until the given size is requested. Return the duration in seconds."""
    begin = world.clock.monotonic()
    await world.until_objects(resource, lambda found: meta.spec(found[0])["replicas"] == wanted)
    return world.clock.monotonic() - begin


async def status(world: SimulatedCluster) -> JSONObject:
    return meta.status(await world.get(HORIZONTAL_POD_AUTOSCALERS, "web"))


async def reasons(world: SimulatedCluster) -> dict[str, str]:
    return {one["type"]: one["reason"] for one in (await status(world)).get("conditions") or ()}


async def notes(world: SimulatedCluster, reason: str) -> list[str]:
    return [str(one["note"]) for one in await world.objects(EVENTS) if one["reason"] == reason]


def millicores(usage: JSONObject) -> int:
    return round(quantity.parse(usage["cpu"]).fraction() * 1000)


@simulated()
async def test_autoscaler_follows_the_load_of_leaders(world: SimulatedCluster) -> None:
    """Idle workers are not part of the average usage (R-STAT-4).

    The set is scaled up at once, and down after the five minutes of the window.
    """
    load = {"cores": 1.5}
    world.runner.busy = lambda spec: load["cores"] if is_leader(spec) else 0.0
    await world.bring_up(served())
    await autoscale(world, autoscaler(LEADERWORKERSETS))
    assert await follow(world, 3) < PERIODS
    load["cores"] = 0.5
    await asyncio.sleep(PERIODS)
    found = await status(world)
    assert found["currentMetrics"][0]["resource"]["current"]["averageUtilization"] == 50
    assert (found["currentReplicas"], found["desiredReplicas"]) == (3, 3)
    assert await reasons(world) == {
        "AbleToScale": "ReadyForNewScale",
        "ScalingActive": "ValidMetricFound",
        "ScalingLimited": "DesiredWithinRange",
    }
    load["cores"] = 0.1
    assert 250 < await follow(world, 1) < 400
    await asyncio.sleep(1)
    up, down = (await notes(world, "SuccessfulRescale"))[:2]
    assert up == "New size: 3; reason: cpu resource utilization (percentage of request) above target"
    assert down == "New size: 1; reason: All metrics below target"


@pytest.mark.parametrize("resource", [DEPLOYMENTS, STATEFULSETS])
@simulated(Settings(managers=()))
async def test_autoscaler_follows_the_average_of_a_workload(world: SimulatedCluster, resource: Resource) -> None:
    world.runner.busy = lambda _: 0.9
    await world.client.create(resource, workload(resource))
    await world.at_rest()
    await autoscale(world, autoscaler(resource, {"type": "AverageValue", "averageValue": "300m"}))
    await follow(world, 6, resource)
    await asyncio.sleep(PERIODS)
    assert (await reasons(world))["ScalingLimited"] == "TooManyReplicas"


@simulated(Settings(managers=()))
async def test_autoscaler_grows_at_the_rate_of_its_policy(world: SimulatedCluster) -> None:
    """With `selectPolicy: Disabled`, one pod is added per minute, and no pod is removed."""
    one = {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}
    load = {"cores": 3.0}
    world.runner.busy = lambda _: load["cores"]
    await world.client.create(DEPLOYMENTS, workload(DEPLOYMENTS))
    await world.at_rest()
    await autoscale(
        world, autoscaler(DEPLOYMENTS, behavior={"scaleUp": one, "scaleDown": {"selectPolicy": "Disabled"}})
    )
    await follow(world, 3, DEPLOYMENTS)
    await asyncio.sleep(1)
    assert await reasons(world) == {
        "AbleToScale": "SucceededRescale",
        "ScalingActive": "ValidMetricFound",
        "ScalingLimited": "ScaleUpLimit",
    }
    assert 50 < await follow(world, 4, DEPLOYMENTS) < 80
    load["cores"] = 0.0
    await asyncio.sleep(600)
    assert meta.spec(await world.get(DEPLOYMENTS, "web"))["replicas"] == 4


@simulated(Settings(managers=()))
async def test_autoscaler_reports_unreadable_sources(world: SimulatedCluster) -> None:
    await autoscale(world, autoscaler(DEPLOYMENTS))
    await asyncio.sleep(1)
    assert await reasons(world) == {"AbleToScale": "FailedGetScale"}
    assert 'deployments.apps "web" not found' in (await notes(world, "FailedGetScale"))[0]
    made = workload(DEPLOYMENTS)
    del made["spec"]["template"]["spec"]["containers"][0]["resources"]
    await world.client.create(DEPLOYMENTS, made)
    await asyncio.sleep(PERIODS)
    assert (await reasons(world))["ScalingActive"] == "FailedGetResourceMetric"
    (text,) = await notes(world, "FailedGetResourceMetric")
    assert text.startswith("failed to get cpu utilization: missing request for cpu in container main of Pod web-")
    queue = {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "1"}}
    await world.client.patch(
        HORIZONTAL_POD_AUTOSCALERS,
        meta.key(await world.get(HORIZONTAL_POD_AUTOSCALERS, "web")),
        {"spec": {"metrics": [{"type": "External", "external": queue}]}},
        kind="merge",
    )
    await asyncio.sleep(1)
    assert (await reasons(world))["ScalingActive"] == "FailedGetExternalMetric"
    await world.client.patch(
        DEPLOYMENTS, meta.key(await world.get(DEPLOYMENTS, "web")), {"spec": {"replicas": 0}}, kind="merge"
    )
    await asyncio.sleep(PERIODS)
    assert (await reasons(world))["ScalingActive"] == "ScalingDisabled"
    assert (await status(world))["desiredReplicas"] == 0


@simulated(Settings(managers=()))
async def test_autoscaler_keeps_its_bounds_at_any_load(world: SimulatedCluster) -> None:
    await world.client.create(DEPLOYMENTS, workload(DEPLOYMENTS))
    await autoscale(world, autoscaler(DEPLOYMENTS, minReplicas=3, maxReplicas=4))
    assert await follow(world, 3, DEPLOYMENTS) < 5
    await world.client.patch(
        DEPLOYMENTS, meta.key(await world.get(DEPLOYMENTS, "web")), {"spec": {"replicas": 9}}, kind="merge"
    )
    assert await follow(world, 4, DEPLOYMENTS) < 17


@simulated(Settings(managers=()))
async def test_metrics_cover_pods_and_their_nodes(world: SimulatedCluster) -> None:
    world.runner.busy = lambda _: 0.25
    await world.client.create(DEPLOYMENTS, workload(DEPLOYMENTS))
    await world.at_rest()
    pods = (await world.client.list(POD_METRICS, namespace=NAMESPACE, label_selector="app=router")).items
    assert [millicores(one["containers"][0]["usage"]) for one in pods] == [250, 250]
    assert [one["containers"][0]["usage"]["memory"] for one in pods] == ["16Mi", "16Mi"]
    assert all(0.9 < float(one["window"].removesuffix("s")) < 1.1 for one in pods)
    assert (await world.client.list(POD_METRICS, namespace=NAMESPACE, label_selector="app=no")).items == []
    (node,) = (await world.client.list(NODE_METRICS)).items
    assert (millicores(node["usage"]), node["usage"]["memory"]) == (500, "32Mi")


@simulated(Settings(managers=()))
async def test_invalid_selector_does_not_block_other_autoscalers(world: SimulatedCluster) -> None:
    """An autoscaler reports an invalid selector in a status, and other autoscalers continue."""
    world.runner.busy = lambda _: 3.0
    await world.create(served())
    key = meta.key(await world.get(LEADERWORKERSETS, "web"))
    await world.client.patch(
        LEADERWORKERSETS, key, {"status": {"hpaPodSelector": "a in ("}}, kind="merge", subresource="status"
    )
    broken = autoscaler(LEADERWORKERSETS)
    broken["metadata"]["name"] = "broken"
    await world.client.create(DEPLOYMENTS, workload(DEPLOYMENTS))
    await world.at_rest()
    await autoscale(world, broken)
    await autoscale(world, autoscaler(DEPLOYMENTS))
    await follow(world, 6, DEPLOYMENTS)
    condition = meta.find_condition(await world.get(HORIZONTAL_POD_AUTOSCALERS, "broken"), "ScalingActive")
    assert "unable to parse label selector" in str(condition)
