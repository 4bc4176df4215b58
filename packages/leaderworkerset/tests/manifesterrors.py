"""Sixty errors that people make in manifests, with the fields that messages about them name.

The table has a path in the manifest, the value to put there, and the field and words of the message. `REMOVED` removes
the field. Values that kube-apiserver stores in a LeaderWorkerSet, although no pod can run with them, are warnings.
"""

import copy
import json
from typing import Any, Final

import yaml

from kuberuntime.objects.meta import JSONObject

REMOVED: Final = object()
CONTAINER: Final[JSONObject] = {
    "name": "serve",
    "image": "registry.example.com/org/server:1",
    "command": ["serve"],
    "ports": [{"name": "http", "containerPort": 8000}],
    "env": [{"name": "A", "value": "1"}],
    "resources": {"limits": {"cpu": "2", "memory": "1Gi"}},
    "volumeMounts": [{"name": "cache", "mountPath": "/cache"}],
    "readinessProbe": {"httpGet": {"path": "/health", "port": "http"}},
}
MANIFEST: Final[JSONObject] = {
    "apiVersion": "leaderworkerset.x-k8s.io/v1",
    "kind": "LeaderWorkerSet",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxUnavailable": 1}},
        "leaderWorkerTemplate": {
            "size": 4,
            "restartPolicy": "RecreateGroupOnPodRestart",
            "workerTemplate": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [CONTAINER], "volumes": [{"name": "cache", "emptyDir": {}}]},
            },
        },
    },
}
SPEC: Final = "spec"
LWT: Final = "spec.leaderWorkerTemplate"
POD: Final = f"{LWT}.workerTemplate.spec"
MAIN: Final = f"{POD}.containers.0"
ROLLING: Final = "spec.rolloutStrategy.rollingUpdateConfiguration"

REFUSED: Final[list[tuple[str, Any, str]]] = [
    ("spec.replica", 2, 'spec.replica: unknown field, did you mean "replicas"?'),
    ("spec.replicas", -1, "spec.replicas: Invalid value: -1"),
    ("spec.replicas", "2", 'spec.replicas: Invalid value: "2"'),
    ("spec.startupPolicy", "LeaderRunning", "spec.startupPolicy: Invalid value"),
    ("spec.size", 4, "spec.size: unknown field"),
    (LWT, REMOVED, f"{LWT}: Required value"),
    (f"{LWT}.size", 0, f"{LWT}.size: Invalid value: 0"),
    (f"{LWT}.size", 2.5, f"{LWT}.size: Invalid value: 2.5"),
    (f"{LWT}.restartPolicy", "Always", f"{LWT}.restartPolicy: Invalid value"),
    (f"{LWT}.workerTemplate", REMOVED, f"{LWT}.workerTemplate: Required value"),
    (f"{LWT}.wrkerTemplate", {}, "leaderWorkerTemplate.wrkerTemplate: unknown field"),
    (f"{LWT}.subGroupPolicy", {"subGroupSize": 0}, f"{LWT}.subGroupPolicy"),
    (f"{LWT}.subGroupPolicy", {"subGroupSize": 8}, f"{LWT}.subGroupPolicy"),
    (f"{ROLLING}.maxUnavailable", "150%", f"{ROLLING}.maxUnavailable: Invalid value"),
    (f"{ROLLING}.maxUnavailable", "one", f"{ROLLING}.maxUnavailable: Invalid value"),
    (f"{ROLLING}.maxSurge", -1, f"{ROLLING}.maxSurge: Invalid value: -1"),
    (ROLLING, {"maxUnavailable": 0, "maxSurge": 0}, f"{ROLLING}.maxUnavailable: Invalid value"),
    (f"{ROLLING}.partition", -1, f"{ROLLING}.partition: Invalid value: -1"),
    ("spec.rolloutStrategy.type", "Recreate", "spec.rolloutStrategy.type: Invalid value"),
    ("spec.networkConfig", {"subdomainPolicy": "Unique"}, "spec.networkConfig.subdomainPolicy: Invalid value"),
    ("metadata.name", "Web", "metadata.name: Invalid value"),
    ("metadata.name", "0web", "metadata.name: Invalid value"),
    ("metadata.name", "w" * 64, "metadata.name: Invalid value"),
    (POD, REMOVED, f"{POD}"),
    (f"{POD}.container", [], "workerTemplate.spec.container: unknown field"),
    (f"{POD}.containers", REMOVED, f"{POD}.containers: Required value"),
    (f"{MAIN}.imag", "x", 'did you mean "image"?'),
    (f"{MAIN}.command", "serve --port 80", "command: Invalid value"),
    (f"{MAIN}.env", {"A": "1"}, "env: Invalid value"),
    (f"{MAIN}.env.0.value", 1, "env[0].value: Invalid value: 1"),
    (f"{MAIN}.ports.0", 8000, "ports[0]: Invalid value: 8000"),
    (f"{MAIN}.resources.limits.memory", "12 GB", "resources.limits.memory: Invalid value"),
    (f"{MAIN}.resources.limits.cpu", "two", "resources.limits.cpu: Invalid value"),
    (f"{MAIN}.resource", {}, 'did you mean "resources"?'),
    (f"{MAIN}.name", REMOVED, "containers[0].name: Required value"),
    (f"{POD}.containers.1", CONTAINER, "containers[1]: Duplicate value"),
    (f"{MAIN}.volumeMounts.0.mountPath", REMOVED, "volumeMounts[0].mountPath: Required value"),
    ("apiVersion", "leaderworkerset.x-k8s.io/v1alpha1", "apiVersion: Unsupported value"),
]
WARNED: Final[list[tuple[str, Any, str]]] = [
    (f"{MAIN}.image", REMOVED, "containers[0].image: Required value"),
    (f"{MAIN}.image", " org/server", "containers[0].image: Invalid value"),
    (f"{MAIN}.image", "org/my server:1", "containers[0].image: Invalid value"),
    (f"{MAIN}.image", "https://registry.example.com/org/server", "containers[0].image: Invalid value"),
    (f"{MAIN}.name", "serve_1", "containers[0].name: Invalid value"),
    (f"{MAIN}.ports.0.containerPort", 80000, "containerPort: Invalid value: 80000"),
    (f"{MAIN}.ports.0.name", "a-very-long-port-name", "ports[0].name: Invalid value"),
    (f"{MAIN}.volumeMounts.0.name", "models", 'volumeMounts[0].name: Not found: "models"'),
    (f"{MAIN}.readinessProbe.httpGet.port", "web", 'readinessProbe.httpGet.port: Not found: "web"'),
    (f"{MAIN}.readinessProbe.httpGet.port", 0, "readinessProbe.httpGet.port: Invalid value: 0"),
    (f"{MAIN}.readinessProbe", {"periodSeconds": 5}, "readinessProbe: Required value"),
    (f"{MAIN}.readinessProbe.exec", {"command": ["true"]}, "readinessProbe"),
    (f"{MAIN}.resources.requests", {"cpu": "4"}, "resources.requests: Invalid value"),
    (f"{MAIN}.resources.limits.cpu", "-1", "resources.limits[cpu]: Invalid value"),
    (f"{MAIN}.env.0.name", "", "env[0].name: Required value"),
    (f"{MAIN}.imagePullPolicy", "Sometimes", "imagePullPolicy: Unsupported value"),
    (f"{POD}.volumes.0.name", "model_cache", "volumes[0].name: Invalid value"),
    (f"{POD}.restartPolicy", "Never", "restartPolicy: Unsupported value"),
    (f"{POD}.activeDeadlineSeconds", 60, "activeDeadlineSeconds: Forbidden"),
    (f"{POD}.tolerations", [{"operator": "Exist"}], "tolerations[0].operator: Unsupported value"),
    (f"{POD}.dnsPolicy", "None", "dnsConfig: Required value"),
    (f"{POD}.nodeSelector", {"a b": "c"}, "nodeSelector"),
    (f"{POD}.runtimeClassName", "nvidia GPU", "runtimeClassName: Invalid value"),
    (f"{MAIN}.resources.limits.memory", "512m", "resources.limits[memory]: Invalid value"),
    (f"{MAIN}.resources.limits", {"nvidia.com/gpu": "0.5"}, "resources.limits[nvidia.com/gpu]: Invalid value"),
    (f"{MAIN}.env.0", {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.nam"}}}, "fieldRef.fieldPath"),
    (
        "metadata.annotations",
        {"leaderworkerset.x-k8s.io/exclusive-topology": "rack"},
        "Did you mean leaderworkerset.sigs",
    ),
    (f"{LWT}.workerTemplate.metadata.labels", {"app": "a b"}, "labels"),
    (
        f"{LWT}.workerTemplate.metadata.labels",
        {"leaderworkerset.sigs.k8s.io/group-index": "0"},
        "ignored, because only the controllers set",
    ),
]


NAMED: Final = {
    "resources.limits[nvidia.com/gpu]: Invalid value": f"{MAIN}.resources.limits.nvidia:com/gpu",
    "fieldRef.fieldPath": f"{MAIN}.env.0.valueFrom.fieldRef.fieldPath",
    "Did you mean leaderworkerset.sigs": "metadata.annotations.leaderworkerset:x-k8s:io/exclusive-topology",
    f"{LWT}.subGroupPolicy": f"{LWT}.subGroupPolicy.subGroupSize",
    f"{ROLLING}.maxUnavailable: Invalid value": f"{ROLLING}.maxUnavailable",
    "spec.networkConfig.subdomainPolicy: Invalid value": "spec.networkConfig.subdomainPolicy",
    "readinessProbe": f"{MAIN}.readinessProbe.httpGet",
    "tolerations[0].operator: Unsupported value": f"{POD}.tolerations.0.operator",
    "dnsConfig: Required value": f"{POD}.dnsConfig",
}
"""The field in a message, if it is not the changed one. A colon in a path represents a dot in a name."""


def changed(path: str, value: Any) -> JSONObject:
    """Return the manifest with another value at a path."""
    obj: Any = copy.deepcopy(MANIFEST)
    *parents, last = (int(name) if name.isdigit() else name for name in path.split("."))
    place = obj
    for name in parents:
        place = place[name]
    if value is REMOVED:
        del place[last]
    elif isinstance(place, list) and last == len(place):
        place.append(value)
    else:
        place[last] = value
    return dict(obj)


def text_of(obj: JSONObject) -> str:
    """Return an object as YAML without anchors."""
    text: str = yaml.safe_dump(json.loads(json.dumps(obj)), sort_keys=False)
    return text


def line_of(obj: JSONObject, path: str) -> int:
    """Return the line of a field in the YAML of an object."""
    return line_in(text_of(obj), path)


def line_in(text: str, path: str) -> int:
    """Return the line of a field or, if it is missing, of the next field above it, by the marks of composed nodes."""
    node, line = yaml.compose(text), 1
    for name in path.split("."):
        if isinstance(node, yaml.SequenceNode) and name.isdigit() and int(name) < len(node.value):
            node = node.value[int(name)]
            line = node.start_mark.line + 1
            continue
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        match = next(((key, value) for key, value in pairs if key.value == name.replace(":", ".")), None)
        if match is None:
            return line
        line, node = match[0].start_mark.line + 1, match[1]
    return line
