"""The objects that kubectl is tried on."""

from typing import Any

from kuberuntime.objects.meta import JSONObject

SLEEP = {"name": "main", "image": "app:1", "command": ["sh", "-c", "echo hello; echo world; exec sleep infinity"]}
SPEC = {"terminationGracePeriodSeconds": 0, "containers": [SLEEP]}


def pod(name: str = "talker", **metadata: Any) -> JSONObject:
    """Return a pod that says something and stays."""
    named = {"name": name, "labels": {"app": name}} | metadata
    return {"apiVersion": "v1", "kind": "Pod", "metadata": named, "spec": SPEC}


def statefulset(replicas: int = 2) -> JSONObject:
    """Return a StatefulSet."""
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": SPEC}
    spec = {"replicas": replicas, "serviceName": "web", "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web"}, "spec": spec}


def lws(replicas: int = 1) -> JSONObject:
    """Return a LeaderWorkerSet."""
    spec = {"replicas": replicas, "leaderWorkerTemplate": {"size": 2, "workerTemplate": {"spec": SPEC}}}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "groups"},
        "spec": spec,
    }


def config_map(**data: str) -> JSONObject:
    """Return a ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": data}
