"""Tests that the defaults, errors and updates of pods match kube-apiserver."""

from collections.abc import Callable
from typing import Any

import pytest

from kuberuntime.objects.podresources import qos_class

Api = Any
Make = Callable[[str], Api]

CONTAINER: dict[str, Any] = {"name": "c", "image": "busybox:1.36"}


def spec(**fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": [CONTAINER]} | fields}


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1024Mi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}}, "BestEffort"),
    ],
)
def test_qos_class_follows_requests_and_limits(resources: dict[str, Any], expected: str) -> None:
    assert qos_class({"containers": [{"resources": resources}]}) == expected


FROZEN = "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"

CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"containers": [CONTAINER | {"image": "other"}]}, ""),
    ({"activeDeadlineSeconds": 5}, ""),
    ({"nodeName": "node-1"}, ""),
    ({"hostname": "x"}, FROZEN),
    ({"containers": [CONTAINER | {"command": ["x"]}]}, FROZEN),
    ({"schedulingGates": [{"name": "a/b"}]}, "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'a/b'"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "text"), CHANGES, ids=[str(change)[:40] for change, _ in CHANGES])
def test_few_fields_of_a_running_pod_may_change(api: Make, change: dict[str, Any], text: str) -> None:
    stored = api("pods").create(spec())
    merged = stored["spec"] | change
    if "containers" in change:
        merged["containers"] = [stored["spec"]["containers"][0] | change["containers"][0]]
    errors = api("pods").update_faults(stored, {"spec": merged})
    assert [error[: len(text)] for error in errors] == ([text] if text else [])


def test_pod_ip_overrides_the_list_of_pod_ips(api: Make) -> None:
    pods = api("pods")
    stored = pods.create(spec())
    status = {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.2"}]}
    assert pods.kind.prepare("status", stored | {"status": status}, stored)["status"]["podIPs"] == [{"ip": "10.0.0.1"}]
