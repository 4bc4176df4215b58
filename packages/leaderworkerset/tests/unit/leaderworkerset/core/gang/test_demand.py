"""Tests the effective requests of pods, as the scheduler computes them (R-GANG-5)."""

from typing import Any

import pytest

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.core.gang import demand


def asks(restart: str = "", **requests: str) -> JSONObject:
    return {"resources": {"requests": requests}} | ({"restartPolicy": restart} if restart else {})


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, {}),
        ({"containers": [asks(cpu="100m"), asks(cpu="200m", memory="1Gi")]}, {"cpu": "300m", "memory": "1Gi"}),
        ({"containers": [asks(cpu="1")], "initContainers": [asks(cpu="3")]}, {"cpu": "3"}),
        ({"containers": [asks(cpu="1")], "initContainers": [asks("Always", cpu="1"), asks(cpu="3")]}, {"cpu": "4"}),
        ({"containers": [asks(cpu="1")], "initContainers": [asks(cpu="3"), asks("Always", cpu="1")]}, {"cpu": "3"}),
        ({"containers": [asks(cpu="2")], "initContainers": [asks("Always", cpu="2")]}, {"cpu": "4"}),
        (
            {"containers": [asks(cpu="1", **{"nvidia.com/gpu": "8"})], "resources": {"requests": {"cpu": "5"}}},
            {"cpu": "5", "nvidia.com/gpu": "8"},
        ),
        ({"containers": [asks(cpu="1")], "overhead": {"cpu": "250m"}}, {"cpu": "1250m"}),
        ({"containers": [{"resources": {"limits": {"cpu": "7"}}}]}, {}),
    ],
    ids=[
        "nothing",
        "containers add up",
        "an init container may want more",
        "a sidecar runs beside later init containers",
        "a sidecar does not run beside earlier init containers",
        "sidecars run beside containers",
        "what the pod requests as a whole counts instead",
        "overhead",
        "limits are not requests",
    ],
)
def test_pod_requests_are_summed_up(spec: dict[str, Any], expected: dict[str, str]) -> None:
    assert demand.encode(demand.pod_requests(spec)) == expected
