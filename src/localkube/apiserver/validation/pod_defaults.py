"""Defaults of pods and pod templates, filled in place, as kube-apiserver has them.

`default_spec` is for both. `default_pod` adds what only pods get: requests from limits, host ports, service links; and
`admit_pod` what the API server's own admission adds to new pods: the service account and the tolerations that keep a pod
for five minutes on a node that is lost (priorities: `priorities.py`).
"""

from collections.abc import Iterator

from kuberuntime.objects.meta import JSONObject

FILE_MODE = 420  # 0644

PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
HOOKS = ("postStart", "preStop")
CONTAINER_LISTS = ("containers", "initContainers", "ephemeralContainers")

WITH_MODE = ("secret", "configMap", "downwardAPI", "projected")

STORAGE_DEFAULTS: dict[str, JSONObject] = {
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
    "hostPath": {"type": ""},
}
"""Plain defaults of volume sources."""

LOST_NODE_SECONDS = 300
LOST_NODE_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def default_spec(spec: JSONObject) -> None:
    """Fill the defaults that pods and pod templates share."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    if "serviceAccountName" in spec:
        spec["serviceAccount"] = spec["serviceAccountName"]
    elif "serviceAccount" in spec:
        spec["serviceAccountName"] = spec["serviceAccount"]
    for container in _containers(spec):
        _default_container(container)
    for volume in spec.get("volumes") or ():
        _default_volume(volume)


def _containers(spec: JSONObject) -> Iterator[JSONObject]:
    for name in CONTAINER_LISTS:
        yield from spec.get(name) or ()


def _default_container(container: JSONObject) -> None:
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = pull_policy(container.get("image", ""))
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for variable in container.get("env") or ():
        if "valueFrom" in variable:
            _default_source(variable["valueFrom"])
    for name in PROBES:
        if name in container:
            _default_probe(container[name])
    for hook in HOOKS:
        if hook in container.get("lifecycle", {}):
            _default_http(container["lifecycle"][hook])


def pull_policy(image: str) -> str:
    """Return the policy that the image's tag asks for: what may change under its name is always pulled.

    >>> pull_policy("busybox"), pull_policy("r.io:5000/busybox:1.36"), pull_policy("busybox@sha256:00")
    ('Always', 'IfNotPresent', 'IfNotPresent')
    """
    if "@" in image:
        return "IfNotPresent"
    _, _, tag = image.rpartition("/")[2].partition(":")
    return "Always" if tag in {"", "latest"} else "IfNotPresent"


def _default_source(source: JSONObject) -> None:
    if "fieldRef" in source:
        source["fieldRef"].setdefault("apiVersion", "v1")
    if "fileKeyRef" in source:
        source["fileKeyRef"].setdefault("optional", False)


def _default_probe(probe: JSONObject) -> None:
    probe.setdefault("timeoutSeconds", 1)
    probe.setdefault("periodSeconds", 10)
    probe.setdefault("successThreshold", 1)
    probe.setdefault("failureThreshold", 3)
    _default_http(probe)
    if "grpc" in probe and probe["grpc"].get("service") is None:
        probe["grpc"]["service"] = ""


def _default_http(handler: JSONObject) -> None:
    if "httpGet" in handler:
        handler["httpGet"].setdefault("path", "/")
        handler["httpGet"].setdefault("scheme", "HTTP")


def _default_volume(volume: JSONObject) -> None:
    if len(volume) == 1:
        volume["emptyDir"] = {}
        return
    for name in WITH_MODE:
        if name in volume:
            volume[name].setdefault("defaultMode", FILE_MODE)
    for name, defaults in STORAGE_DEFAULTS.items():
        if name in volume:
            volume[name] = defaults | volume[name]
    for item in volume.get("downwardAPI", {}).get("items") or ():
        _default_source(item)
    for source in volume.get("projected", {}).get("sources") or ():
        _default_projection(source)
    if "ephemeral" in volume and "volumeClaimTemplate" in volume["ephemeral"]:
        volume["ephemeral"]["volumeClaimTemplate"]["spec"].setdefault("volumeMode", "Filesystem")
    if "image" in volume:
        volume["image"].setdefault("pullPolicy", pull_policy(volume["image"].get("reference", "")))


def _default_projection(source: JSONObject) -> None:
    for item in source.get("downwardAPI", {}).get("items") or ():
        _default_source(item)
    if "serviceAccountToken" in source:
        source["serviceAccountToken"].setdefault("expirationSeconds", 3600)


def default_pod(pod: JSONObject) -> None:
    """Fill the defaults of a pod."""
    spec = pod["spec"]
    default_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    if "resources" in spec:
        _default_requests(spec["resources"])
    for container in _containers(spec):
        if "resources" in container:
            _default_requests(container["resources"])
        if spec.get("hostNetwork"):
            for port in container.get("ports") or ():
                port.setdefault("hostPort", port["containerPort"])


def _default_requests(resources: JSONObject) -> None:
    if resources.get("limits"):
        resources["requests"] = {**resources["limits"], **resources.get("requests", {})}


def admit_pod(pod: JSONObject) -> None:
    """Add what the API server's own admission adds to a new pod."""
    spec = pod["spec"]
    spec.setdefault("serviceAccountName", "default")
    spec["serviceAccount"] = spec["serviceAccountName"]
    tolerate_lost_nodes(spec)


def keep_tolerating(pod: JSONObject, _old: JSONObject) -> None:
    """Add what the API server's own admission adds to a pod that is changed."""
    tolerate_lost_nodes(pod["spec"])


def tolerate_lost_nodes(spec: JSONObject) -> None:
    """Keep a pod on a node that is lost for five minutes, unless it says how long."""
    tolerations = spec.get("tolerations") or []
    missing = [taint for taint in LOST_NODE_TAINTS if not any(_tolerates(entry, taint) for entry in tolerations)]
    if missing:
        spec["tolerations"] = tolerations + [_toleration(taint) for taint in missing]


def _tolerates(toleration: JSONObject, taint: str) -> bool:
    return (toleration.get("key", taint), toleration.get("effect", "NoExecute")) == (taint, "NoExecute")


def _toleration(taint: str) -> JSONObject:
    return {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": LOST_NODE_SECONDS}
