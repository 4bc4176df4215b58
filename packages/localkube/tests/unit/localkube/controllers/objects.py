"""Builds objects for tests of the embedded controllers."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from testkit.objects import merge

from kuberuntime.objects.meta import JSONObject

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


def seconds_ago(seconds: float) -> str:
    """Return the serialized form of a time before `NOW`."""
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def build_statefulset(change: JSONObject | None = None, /, **spec: object) -> JSONObject:
    """Build a StatefulSet `web` with three ordered replicas. Keyword arguments replace spec fields."""
    base: JSONObject = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "web", "namespace": "default", "uid": "set-uid", "generation": 1, "resourceVersion": "1"},
        "spec": {
            "replicas": 3,
            "serviceName": "web",
            "podManagementPolicy": "OrderedReady",
            "selector": {"matchLabels": {"app": "web"}},
            "template": build_template("v1"),
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        },
    }
    return merge(merge(base, {"spec": spec}), change or {})


def build_template(image: str) -> JSONObject:
    """Build a pod template with one container that uses this image."""
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": image}]}}


def build_pod(name: str, change: JSONObject | None = None) -> JSONObject:
    """Build an unscheduled pod."""
    base: JSONObject = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": f"{name}-uid", "resourceVersion": "1", "labels": {}},
        "spec": {"containers": [{"name": "main"}]},
        "status": {"phase": "Pending"},
    }
    return merge(base, change or {})


def build_node(name: str, labels: Mapping[str, str] | None = None, **allocatable: str) -> JSONObject:
    """Build a ready node. Keyword arguments replace its allocatable resources."""
    resources = {"cpu": "8", "memory": "32Gi", "pods": "110"} | allocatable
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"{name}-uid",
            "labels": {"kubernetes.io/hostname": name} | dict(labels or {}),
        },
        "spec": {},
        "status": {"allocatable": resources, "capacity": resources},
    }


def ready_status(since: float = 60) -> JSONObject:
    """Build the status of a pod that became ready `seconds` before `NOW`."""
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": seconds_ago(since)}
    return {"phase": "Running", "conditions": [condition]}
