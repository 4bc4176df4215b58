"""Compares the counts of both disruption controllers, and the evictions that both API servers allow."""

from typing import Any

from tests.conformance.controllers.conftest import CheckSame
from tests.conformance.controllers.stage import Stage
from tests.conformance.objects import container, named

from kuberuntime.errors import APIError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import POD_DISRUPTION_BUDGETS, PODS, STATEFULSETS, Resource

LABELS = {"app": "web"}
COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods", "observedGeneration")


def statefulset() -> JSONObject:
    """Return three pods that start and terminate immediately."""
    pods = {"terminationGracePeriodSeconds": 1, "containers": [container(command=["sleep", "infinity"])]}
    template = {"metadata": {"labels": LABELS}, "spec": pods}
    spec = {"replicas": 3, "serviceName": "web", "podManagementPolicy": "Parallel", "template": template}
    return named("web", spec=spec | {"selector": {"matchLabels": LABELS}})


async def counted(stage: Stage, wanted: JSONObject) -> None:
    """Wait until the controller has counted `count` pods. Record the counts and the condition."""
    await stage.client.patch(POD_DISRUPTION_BUDGETS, ObjectKey(stage.namespace, "web"), {"spec": wanted}, kind="merge")
    while not meta.is_observed(found := await stage.client.get(POD_DISRUPTION_BUDGETS, stage.key("web"))):
        await stage.client.list(PODS, namespace=stage.namespace)
    status = meta.status(found)
    (condition,) = status["conditions"]
    stage.told.append({name: status[name] for name in COUNTS} | {"why": condition["reason"]})


async def evict(stage: Stage, name: str) -> None:
    """Evict a pod, and record the response of the API server."""
    evictions = Resource("", "v1", f"pods/{name}/eviction", "Eviction")
    metadata = {"name": name, "namespace": stage.namespace}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    told: Any = "granted"
    try:
        await stage.client.create(evictions, eviction)
    except APIError as error:
        told = [error.code, error.message]
    stage.told.append(told)


def all_ready(stage: Stage) -> bool:
    """Return whether all three pods are ready."""
    return sum(meta.is_condition_true(pod, "Ready") for pod in stage.objects(PODS).values()) == 3


def test_disruption_budgets_are_counted_and_enforced_alike(same: CheckSame) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.create(STATEFULSETS, statefulset())
        await stage.until("three pods", all_ready)
        await stage.create(
            POD_DISRUPTION_BUDGETS, named("web", spec={"selector": {"matchLabels": LABELS}, "minAvailable": 3})
        )
        await counted(stage, {"minAvailable": 3})
        await evict(stage, "web-0")
        await counted(stage, {"minAvailable": "34%"})
        await counted(stage, {"minAvailable": None, "maxUnavailable": "34%"})
        await counted(stage, {"maxUnavailable": 0})
        await evict(stage, "web-1")
        await counted(stage, {"maxUnavailable": 1})
        first = meta.uid(stage.objects(PODS)["web-2"])
        # The pod remains while it terminates. Otherwise, its replacement could be ready before the next eviction.
        await stage.patch(PODS, "web-2", {"metadata": {"finalizers": ["example.com/stays"]}})
        await evict(stage, "web-2")
        await evict(stage, "web-0")
        await stage.patch(PODS, "web-2", {"metadata": {"finalizers": []}})
        await stage.until("another pod", lambda one: all_ready(one) and meta.uid(one.objects(PODS)["web-2"]) != first)
        await stage.create(
            POD_DISRUPTION_BUDGETS, named("other", spec={"selector": {"matchLabels": LABELS}, "minAvailable": 0})
        )
        await evict(stage, "web-1")

    same(scenario)
