"""Tests the lossless conversion of autoscalers between autoscaling/v1 and autoscaling/v2."""

import json
from typing import Any

import pytest
from tests.unit.localkube.apiserver.harness import Api, run

from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.builtin import autoscalersv1

PREFIX = "autoscaling.alpha.kubernetes.io/"
V1 = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
V2 = V1.replace("v1", "v2", 1)
MEMORY = {
    "type": "Resource",
    "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}},
}


def cpu(percent: int) -> JSONObject:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def autoscaler(version: str, **spec: Any) -> JSONObject:
    target = {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}
    return {
        "apiVersion": f"autoscaling/{version}",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {"scaleTargetRef": target, "maxReplicas": 4} | spec,
    }


def test_v2_fields_survive_a_v1_write_in_annotations() -> None:
    async def scenario(api: Api) -> None:
        behavior = {"scaleDown": {"selectPolicy": "Disabled"}}
        stored = await api.create(V2, autoscaler("v2", metrics=[MEMORY, cpu(50)], behavior=behavior))
        shown = (await api.get(f"{V1}/web")).body
        assert shown["apiVersion"] == "autoscaling/v1"
        assert shown["spec"]["targetCPUUtilizationPercentage"] == 50
        assert json.loads(shown["metadata"]["annotations"][f"{PREFIX}metrics"]) == [MEMORY]
        shown["spec"]["targetCPUUtilizationPercentage"] = 70
        assert (await api.send("PUT", f"{V1}/web", shown)).code == 200
        written = await api.get(f"{V2}/web")
        assert written["spec"] == stored["spec"] | {"metrics": [MEMORY, cpu(70)]}
        assert "annotations" not in written["metadata"]

    run(scenario)


def test_v1_status_has_cpu_and_other_metrics_in_annotations() -> None:
    current = {
        "type": "Resource",
        "resource": {"name": "cpu", "current": {"averageUtilization": 35, "averageValue": "1"}},
    }
    condition = {"type": "AbleToScale", "status": "True"}
    status = {"currentReplicas": 1, "desiredReplicas": 2, "currentMetrics": [current], "conditions": [condition]}
    stored = autoscaler("v2", minReplicas=1, metrics=[cpu(80)]) | {"status": status}
    shown = autoscalersv1.from_v2(stored)
    assert shown["status"] == {"currentReplicas": 1, "desiredReplicas": 2, "currentCPUUtilizationPercentage": 35}
    assert shown["metadata"]["annotations"].keys() == {f"{PREFIX}current-metrics", f"{PREFIX}conditions"}
    assert autoscalersv1.to_v2(shown)["status"]["currentMetrics"] == [current]


@pytest.mark.parametrize("text", ["", "{", "7", '[{"type": 7}]', '{"scaleUp": 1}'])
def test_malformed_annotation_counts_as_absent(text: str) -> None:
    given = autoscaler("v1")
    given["metadata"]["annotations"] = {f"{PREFIX}metrics": text, f"{PREFIX}behavior": text, "mine": "stays"}
    found = autoscalersv1.to_v2(given)
    assert found["spec"]["metrics"] == [cpu(80)]
    assert "behavior" not in found["spec"]
    assert found["metadata"]["annotations"] == {"mine": "stays"}


def test_metrics_of_the_old_annotation_format_are_rejected() -> None:
    async def scenario(api: Api) -> None:
        old = [{"type": "Resource", "resource": {"name": "memory", "targetAverageUtilization": 80}}]
        given = autoscaler("v1")
        given["metadata"]["annotations"] = {f"{PREFIX}metrics": json.dumps(old)}
        refused = await api.create(V1, given)
        assert refused.code == 422
        assert "spec.metrics[0].resource.target" in refused["message"]

    run(scenario)


def test_newest_version_of_the_group_is_preferred() -> None:
    async def scenario(api: Api) -> None:
        group = await api.get("/apis/autoscaling")
        assert group["preferredVersion"]["version"] == "v2"
        assert [one["version"] for one in group["versions"]] == ["v2", "v1"]
        assert {one["name"] for one in (await api.get("/apis/autoscaling/v1"))["resources"]} == {
            "horizontalpodautoscalers",
            "horizontalpodautoscalers/status",
        }

    run(scenario)
