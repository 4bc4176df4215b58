"""Sets pod defaults that depend on other fields. Constant defaults are in `gotypes/defaults.py`.

`default_spec` is for both. `default_pod` adds defaults for pods only, such as requests from limits, host ports, and
service links. `admit_pod` adds the service account and the tolerations for unreachable nodes, as the built-in
admission plugins do for new pods (for priorities see `priorities.py`).
"""

from collections.abc import Iterator

from kuberuntime.objects.meta import JSONObject

CONTAINER_LISTS = ("containers", "initContainers", "ephemeralContainers")

LOST_NODE_SECONDS = 300
LOST_NODE_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def default_spec(spec: JSONObject) -> None:
    """Set the common defaults of pods and pod templates."""
    if "serviceAccountName" in spec:
        spec["serviceAccount"] = spec["serviceAccountName"]
    elif "serviceAccount" in spec:
        spec["serviceAccountName"] = spec["serviceAccount"]
    for container in _containers(spec):
        if "imagePullPolicy" not in container:
            container["imagePullPolicy"] = pull_policy(container.get("image", ""))
    for volume in spec.get("volumes") or ():
        if len(volume) == 1:
            volume["emptyDir"] = {}
        if "image" in volume:
            volume["image"].setdefault("pullPolicy", pull_policy(volume["image"].get("reference", "")))


def _containers(spec: JSONObject) -> Iterator[JSONObject]:
    for name in CONTAINER_LISTS:
        yield from spec.get(name) or ()


def pull_policy(image: str) -> str:
    """Return the default pull policy for the image tag. Images with a mutable tag are always pulled.

    >>> pull_policy("busybox"), pull_policy("r.io:5000/busybox:1.36"), pull_policy("busybox@sha256:00")
    ('Always', 'IfNotPresent', 'IfNotPresent')
    """
    if "@" in image:
        return "IfNotPresent"
    _, _, tag = image.rpartition("/")[2].partition(":")
    return "Always" if tag in {"", "latest"} else "IfNotPresent"


def default_pod(pod: JSONObject) -> None:
    """Set the defaults of a pod."""
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
    """Add the service account and tolerations that built-in admission plugins add to a new pod."""
    spec = pod["spec"]
    spec.setdefault("serviceAccountName", "default")
    spec["serviceAccount"] = spec["serviceAccountName"]
    tolerate_lost_nodes(spec)


def admit_pod_update(pod: JSONObject, _old: JSONObject) -> None:
    """Add the tolerations that built-in admission plugins add to an updated pod."""
    tolerate_lost_nodes(pod["spec"])


def tolerate_lost_nodes(spec: JSONObject) -> None:
    """Add tolerations that delay eviction from an unreachable node for five minutes, unless the pod has them."""
    tolerations = spec.get("tolerations") or []
    missing = [taint for taint in LOST_NODE_TAINTS if not any(_tolerates(entry, taint) for entry in tolerations)]
    if missing:
        spec["tolerations"] = tolerations + [
            {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": LOST_NODE_SECONDS}
            for taint in missing
        ]


def _tolerates(toleration: JSONObject, taint: str) -> bool:
    return (toleration.get("key", taint), toleration.get("effect", "NoExecute")) == (taint, "NoExecute")
