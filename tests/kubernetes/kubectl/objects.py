"""Builds objects for kubectl tests."""

from typing import Any

from kuberuntime.objects.meta import JSONObject


def spec() -> JSONObject:
    """Return the pod spec, which the caller may modify."""
    command = ["sh", "-c", "echo hello; echo world; exec sleep infinity"]
    return {"terminationGracePeriodSeconds": 0, "containers": [{"name": "main", "image": "app:1", "command": command}]}


def pod(name: str = "talker", **metadata: Any) -> JSONObject:
    """Return a pod that prints a line and continues to run."""
    named = {"name": name, "labels": {"app": name}} | metadata
    return {"apiVersion": "v1", "kind": "Pod", "metadata": named, "spec": spec()}


def statefulset(replicas: int = 2) -> JSONObject:
    """Return a StatefulSet."""
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": spec()}
    wanted = {"replicas": replicas, "serviceName": "web", "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web"}, "spec": wanted}


def lws(replicas: int = 1) -> JSONObject:
    """Return a LeaderWorkerSet."""
    wanted = {"replicas": replicas, "leaderWorkerTemplate": {"size": 2, "workerTemplate": {"spec": spec()}}}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "groups"},
        "spec": wanted,
    }


def config_map(**data: str) -> JSONObject:
    """Return a ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": data}
