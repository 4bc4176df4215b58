"""Tests the resource requests of pods."""

import pytest

from kuberuntime.objects.meta import JSONObject
from localkube.controllers.scheduler import amounts


def container(cpu: str, **fields: object) -> JSONObject:
    """Build a container that requests this amount of CPU."""
    return {"resources": {"requests": {"cpu": cpu}}} | fields


SIDECAR = {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        pytest.param({"containers": [container("1"), container("500m")]}, 1500, id="containers add up"),
        pytest.param({"containers": [container("1")], "initContainers": [container("3")]}, 3000, id="greedy init"),
        pytest.param(
            {"containers": [container("1")], "initContainers": [container("1", **SIDECAR), container("1500m")]},
            2500,
            id="init beside an earlier sidecar",
        ),
        pytest.param(
            {"containers": [container("2")], "initContainers": [container("1500m"), container("1", **SIDECAR)]},
            3000,
            id="sidecars run beside containers",
        ),
        pytest.param({"containers": [container("1")], "overhead": {"cpu": "10m"}}, 1010, id="overhead"),
        pytest.param({"containers": [container("1")], "resources": {"requests": {"cpu": "4"}}}, 4000, id="whole pod"),
        pytest.param({"containers": [{"resources": {"limits": {"cpu": "2"}}}]}, 2000, id="limits stand in"),
    ],
)
def test_cpu_request_of_a_pod_includes_all_containers(spec: JSONObject, cpu: int) -> None:
    assert amounts.pod_requests({"spec": spec}) == {"cpu": cpu, "pods": 1}
