"""Tests evictions, and PodDisruptionBudgets that reject evictions."""

from typing import Any

import pytest
from tests.unit.localkube.apiserver.harness import Api, pod

PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
TOO_MANY = "Cannot evict pod as it would violate the pod's disruption budget."


async def create_pod(api: Api, *, ready: bool = True, phase: str = "Running") -> None:
    created = await api.create(PODS, pod() | {"metadata": {"name": "web", "labels": {"app": "web"}}})
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    status = created.body | {"status": {"phase": phase, "conditions": conditions}}
    assert (await api.send("PUT", f"{PODS}/web/status", status)).code == 200


async def create_budget(api: Api, status: dict[str, Any], name: str = "web", **spec: Any) -> None:
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}}
    selector = {"selector": {"matchLabels": {"app": "web"}}}
    created = await api.create(BUDGETS, budget | {"spec": selector | {"minAvailable": 1} | spec})
    assert created.code == 201, created.body
    counts = {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
    observed = counts | {"observedGeneration": 1} | status
    assert (await api.send("PUT", f"{BUDGETS}/{name}/status", created.body | {"status": observed})).code == 200


async def evict(api: Api, **options: Any) -> Any:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web"}, "deleteOptions": options}
    return await api.create(f"{PODS}/web/eviction", body)


async def test_granted_eviction_is_recorded_before_the_deletion(api: Api) -> None:
    await create_pod(api)
    await create_budget(api, {"disruptionsAllowed": 1})
    assert (await evict(api, dryRun=["All"])).code == 201
    assert "disruptedPods" not in (await api.get(f"{BUDGETS}/web"))["status"]
    assert (await evict(api)).code == 201
    status = (await api.get(f"{BUDGETS}/web"))["status"]
    assert (status["disruptionsAllowed"], [*status["disruptedPods"]]) == (0, ["web"])
    assert (await api.get(f"{PODS}/web")).code == 404


async def test_evicted_pod_has_the_condition_of_a_disruption(api: Api) -> None:
    """Controllers use the condition to distinguish evictions from failures."""
    held = pod() | {"metadata": {"name": "web", "finalizers": ["example.com/hold"]}}
    assert (await api.create(PODS, held)).code == 201
    assert (await evict(api, preconditions={"resourceVersion": "1"})).code == 409
    assert "DisruptionTarget" not in str((await api.get(f"{PODS}/web")).body)
    assert (await evict(api)).code == 201
    evicted = (await api.get(f"{PODS}/web")).body
    (condition,) = [each for each in evicted["status"]["conditions"] if each["type"] == "DisruptionTarget"]
    assert (condition["status"], condition["reason"]) == ("True", "EvictionByEvictionAPI")
    assert evicted["metadata"]["deletionTimestamp"]


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ({}, "The disruption budget web needs 1 healthy pods and has 1 currently"),
        (
            {"observedGeneration": 0, "disruptionsAllowed": 1},
            "The disruption budget web is still being processed by the server.",
        ),
        (
            {
                "conditions": [
                    {
                        "type": "DisruptionAllowed",
                        "status": "False",
                        "reason": "SyncFailed",
                        "message": "not found",
                        "lastTransitionTime": "2026-01-01T00:00:00Z",
                    }
                ]
            },
            "The disruption budget web does not allow evicting pods currently because it failed sync: not found",
        ),
    ],
)
async def test_rejected_eviction_states_the_reason(api: Api, status: dict[str, Any], why: str) -> None:
    await create_pod(api)
    await create_budget(api, status)
    refused = await evict(api)
    assert refused.refusal == (429, "TooManyRequests", TOO_MANY)
    assert refused["details"]["causes"] == [{"reason": "DisruptionBudget", "message": why}]
    assert (await api.get(f"{PODS}/web")).code == 200


async def test_invalid_budget_status_forbids_evictions(api: Api) -> None:
    await create_pod(api)
    many = {f"pod-{index}": "2026-01-01T00:00:00Z" for index in range(2001)}
    await create_budget(api, {"disruptionsAllowed": 5, "disruptedPods": many})
    assert (await evict(api)).code == 403
    await api.delete(f"{BUDGETS}/web")
    await create_budget(api, {"disruptionsAllowed": -1})
    assert (await evict(api)).code == 403


async def test_pod_with_two_budgets_is_not_evicted(api: Api) -> None:
    await create_pod(api)
    await create_budget(api, {"disruptionsAllowed": 1})
    await create_budget(api, {"disruptionsAllowed": 1}, name="other")
    text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    assert (await evict(api)).refusal == (500, "", text)


@pytest.mark.parametrize(
    ("policy", "status", "code"),
    [
        (None, {"currentHealthy": 0}, 429),
        (None, {"currentHealthy": 1}, 201),
        ("IfHealthyBudget", {"desiredHealthy": 0}, 429),
        ("AlwaysAllow", {"currentHealthy": 0}, 201),
    ],
)
async def test_unready_pod_is_evicted_by_policy(
    api: Api, policy: str | None, status: dict[str, Any], code: int
) -> None:
    await create_pod(api, ready=False)
    await create_budget(api, status, **({"unhealthyPodEvictionPolicy": policy} if policy else {}))
    assert (await evict(api)).code == code


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"minAvailable": 1, "maxUnavailable": 1}, "spec"),
        ({"minAvailable": -1}, "spec.minAvailable"),
        ({"maxUnavailable": "101%"}, "spec.maxUnavailable"),
        ({"maxUnavailable": "half"}, "spec.maxUnavailable"),
        ({"unhealthyPodEvictionPolicy": "Never"}, "spec.unhealthyPodEvictionPolicy"),
        ({"selector": {"matchLabels": {"-": ""}}}, "spec.selector.matchLabels"),
    ],
)
async def test_invalid_budgets_are_refused(api: Api, spec: dict[str, Any], field: str) -> None:
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}}
    refused = await api.create(BUDGETS, budget | {"spec": spec})
    assert refused.code == 422
    assert refused["details"]["causes"][0]["field"] == field
