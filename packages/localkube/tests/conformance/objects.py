"""Builds small objects of many kinds, and pods that use each group of fields."""

from typing import Any, Final

from testkit.customkind import LEADERWORKERSETS

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import (
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    ENDPOINT_SLICES,
    HORIZONTAL_POD_AUTOSCALERS,
    HORIZONTAL_POD_AUTOSCALERS_V1,
    LEASES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    PRIORITY_CLASSES,
    SECRETS,
    SERVICES,
    STATEFULSETS,
    STORAGE_CLASSES,
    Resource,
)


def named(name: str, **fields: Any) -> JSONObject:
    """Return an object with this name."""
    return {"metadata": {"name": name}, **fields}


def labeled(name: str, labels: dict[str, str], **fields: Any) -> JSONObject:
    """Return an object with this name and these labels."""
    return {"metadata": {"name": name, "labels": labels}, **fields}


def container(**fields: Any) -> JSONObject:
    """Return a container."""
    return {"name": "main", "image": "app:1", **fields}


def pod(name: str, **spec: Any) -> JSONObject:
    """Return a pod that is already assigned to a node and does not mount a token."""
    return named(name, spec={"automountServiceAccountToken": False, "containers": [container()], **spec})


def template(**spec: Any) -> JSONObject:
    """Return a pod template with the label `app: web`."""
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container()], **spec}}


def statefulset(name: str, **spec: Any) -> JSONObject:
    """Return a StatefulSet."""
    selector = {"matchLabels": {"app": "web"}}
    return named(name, spec={"serviceName": "web", "selector": selector, "template": template(), **spec})


def service(name: str, **spec: Any) -> JSONObject:
    """Return a Service with one port."""
    return named(name, spec={"selector": {"app": "web"}, "ports": [{"port": 80}], **spec})


def lws(name: str, **spec: Any) -> JSONObject:
    """Return a LeaderWorkerSet."""
    groups = {"size": 2, "workerTemplate": {"spec": {"containers": [container()]}}}
    return named(name, spec={"leaderWorkerTemplate": groups, **spec})


def claim(name: str, **spec: Any) -> JSONObject:
    """Return a PersistentVolumeClaim."""
    resources = {"requests": {"storage": "1Gi"}}
    return named(name, spec={"accessModes": ["ReadWriteOnce"], "resources": resources, **spec})


def event(name: str, namespace: str, **fields: Any) -> JSONObject:
    """Return a core/v1 Event about a pod."""
    involved = {"kind": "Pod", "namespace": namespace, "name": "web-0", "apiVersion": "v1"}
    first: JSONObject = {"metadata": {"name": name, "namespace": namespace}, "involvedObject": involved}
    return (
        first | {"reason": "Tested", "message": "it works", "type": "Normal", "source": {"component": "test"}} | fields
    )


SIMPLE: Final[tuple[tuple[Resource, JSONObject], ...]] = (
    (CONFIG_MAPS, named("one", data={"a": "1"}, binaryData={"b": "AAEC"})),
    (SECRETS, named("one", stringData={"a": "1"}, data={"b": "AAEC"})),
    (SERVICES, service("one")),
    (SERVICES, service("headless", clusterIP="None", publishNotReadyAddresses=True)),
    (PODS, pod("one", nodeName="n")),
    (STATEFULSETS, statefulset("one")),
    (LEADERWORKERSETS, lws("one")),
    (HORIZONTAL_POD_AUTOSCALERS, named("one", spec={"scaleTargetRef": {"apiVersion": "a/b", "kind": "C", "name": "d"}, "maxReplicas": 1})),
    (HORIZONTAL_POD_AUTOSCALERS_V1, named("one", spec={"scaleTargetRef": {"apiVersion": "a/b", "kind": "C", "name": "d"}, "maxReplicas": 1})),
    (CONTROLLER_REVISIONS, named("one", data={"a": {"z": "x"}, "b": 1}, revision=3)),
    (LEASES, named("one", spec={"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.678901Z"})),
    (POD_DISRUPTION_BUDGETS, named("one", spec={"minAvailable": "50%", "selector": {"matchLabels": {"app": "none"}}})),
    (ENDPOINT_SLICES, named("one", addressType="IPv4", endpoints=[{"addresses": ["10.1.2.3"]}], ports=[{"name": "http", "port": 80}])),
)  # fmt: skip

CLUSTER_WIDE: Final[tuple[tuple[Resource, JSONObject], ...]] = (
    (NODES, named("conformance", spec={"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]})),
    (PRIORITY_CLASSES, named("conformance", value=1000, description="for tests")),
    (STORAGE_CLASSES, named("conformance", provisioner="example.com/none")),
)
