"""Tests `kubectl top` for pods and nodes, and an autoscaler that uses the same metrics."""

import json
import subprocess
import time

import pytest
from tests.kubernetes.kubectl.conftest import Place
from tests.kubernetes.kubectl.test_deployments import web

from kuberuntime.objects.meta import JSONObject

PATIENCE = 30.0

BUSY = ["sh", "-c", "while :; do :; done"]


AUTOSCALER: JSONObject = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "maxReplicas": 3,
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
            }
        ],
    },
}


def test_autoscale_and_v1_manifests_create_autoscalers(place: Place) -> None:
    place.apply(web(replicas=1))
    place.run("autoscale", "deployment/web", "--max=3", "--cpu=50%")
    shown = json.loads(place.run("get", "horizontalpodautoscalers.v1.autoscaling", "web", "-o", "json"))
    assert (shown["apiVersion"], shown["spec"]["targetCPUUtilizationPercentage"]) == ("autoscaling/v1", 50)
    spec = {"scaleTargetRef": AUTOSCALER["spec"]["scaleTargetRef"], "maxReplicas": 3}
    old = AUTOSCALER | {"apiVersion": "autoscaling/v1", "metadata": {"name": "old"}, "spec": spec}
    for percent in (60, 70):
        place.apply(old | {"spec": spec | {"targetCPUUtilizationPercentage": percent}})
        row = place.run("get", "hpa", "old", "--no-headers")
        assert row.split()[1:4] == ["Deployment/web", "cpu:", f"<unknown>/{percent}%"]
    place.run("delete", "hpa", "web", "old")


def measured(place: Place) -> str:
    """Return the rows for pods of the Deployment. kubectl fails until the first measurement."""
    deadline = time.monotonic() + PATIENCE
    while True:
        result = subprocess.run(
            place.command("top", "pods", "-l", "app=web", "--no-headers"),
            capture_output=True,
            text=True,
            check=False,
            env=place.environment,
        )
        if result.returncode == 0:
            return result.stdout
        assert "metrics not available yet" in result.stderr, result.stderr
        assert time.monotonic() < deadline, result.stderr
        time.sleep(0.2)


def test_top_shows_usage_that_an_autoscaler_follows(place: Place) -> None:
    if place.name != "embedded":
        pytest.skip("kwok runs no processes, and nobody measures there")
    busy = web(replicas=1)
    busy["spec"]["template"]["spec"]["containers"][0] |= {
        "command": BUSY,
        "args": [],
        "resources": {"requests": {"cpu": "10m"}},
    }
    place.apply(busy)
    place.run("rollout", "status", "deployment/web", "--timeout=60s")
    name, cores, memory = measured(place).split()
    assert name.startswith("web-")
    assert cores.endswith("m")
    assert int(cores[:-1]) > 10
    assert memory.endswith("Mi")
    assert place.run("top", "pods", name, "--containers", "--no-headers").split()[:2] == [name, "main"]
    node = place.run("top", "nodes", "--no-headers").split()
    assert int(node[1][:-1]) >= 10
    assert node[2].endswith("%")
    read = json.loads(
        place.run("get", "--raw", f"/apis/metrics.k8s.io/v1beta1/namespaces/{place.namespace}/pods/{name}")
    )
    assert read["kind"] == "PodMetrics"
    assert float(read["window"].removesuffix("s")) >= 1
    assert "PodMetrics" in place.run("api-resources", "--api-group=metrics.k8s.io")
    assert "not found" in place.run("top", "pods", "absent", code=1)
    place.apply(AUTOSCALER)
    place.run("wait", "deployment/web", "--for=jsonpath={.spec.replicas}=3", "--timeout=60s")
    row = place.run("get", "hpa", "web", "--no-headers").split()
    assert row[1] == "Deployment/web"
    assert row[2:4] == ["cpu:", row[3]]
    assert row[3].endswith("%/50%")
    assert "SuccessfulRescale" in place.run("describe", "hpa", "web")
