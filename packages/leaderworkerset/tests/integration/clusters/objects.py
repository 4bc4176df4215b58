"""Builds LeaderWorkerSets as users write them. The values that matter to a test are arguments."""

from collections.abc import Mapping
from typing import Any, Final

from testkit.clusters.cluster import RESTART_ALL, START_DELAY

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import leaderworkerset

GATE: Final = "tests.example.com/released"
"""The readiness gate of pods that become ready only when a test requests it."""


START_DELAY_ANNOTATION: Final = "tests.example.com/start-delay"

END_DELAY_ANNOTATION: Final = "tests.example.com/end-delay"


def slow_template(seconds: int) -> JSONObject:
    """Return a pod template with an image that needs the given time to pull."""
    source = {"fieldRef": {"fieldPath": f"metadata.annotations['{START_DELAY_ANNOTATION}']"}}
    template = pod_template()
    (container,) = template["spec"]["containers"]
    slow = container | {"env": [{"name": START_DELAY, "valueFrom": source}]}
    annotations = {START_DELAY_ANNOTATION: f"{seconds}s"}
    return {"metadata": {"annotations": annotations}, "spec": template["spec"] | {"containers": [slow]}}


def restarting_template(*, gated: bool = False) -> JSONObject:
    """Return a pod template with two containers.

    When the first one exits with `RESTART_ALL`, both restart in place.
    """
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [RESTART_ALL]}}
    template = pod_template(gated=gated)
    (container,) = template["spec"]["containers"]
    watcher = container | {"name": "watcher", "restartPolicy": "Always", "restartPolicyRules": [rule]}
    return {"spec": template["spec"] | {"containers": [watcher, container]}}


def pod_template(image: str = "app:1", *, name: str = "main", gated: bool = False, **fields: Any) -> JSONObject:
    """Return a pod template with one container. `fields` contains pod spec fields."""
    container = {"name": name, "image": image, "command": ["sleep", "infinity"]}
    gates = {"readinessGates": [{"conditionType": GATE}]} if gated else {}
    return {"spec": {"terminationGracePeriodSeconds": 1, "containers": [container]} | gates | fields}


def lws(
    name: str = "web",
    *,
    replicas: int = 2,
    size: int = 3,
    image: str = "app:1",
    gated: bool = False,
    rollout: Mapping[str, Any] | None = None,
    template: Mapping[str, Any] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> JSONObject:
    """Return a LeaderWorkerSet. `template` extends `leaderWorkerTemplate`, and other fields extend the spec."""
    strategy = {"type": "RollingUpdate", "rollingUpdateConfiguration": dict(rollout)} if rollout is not None else None
    return {
        "apiVersion": leaderworkerset.API_VERSION,
        "kind": leaderworkerset.KIND,
        "metadata": {"name": name} | ({"annotations": dict(annotations)} if annotations else {}),
        "spec": {
            "replicas": replicas,
            "leaderWorkerTemplate": {"size": size, "workerTemplate": pod_template(image, gated=gated)}
            | dict(template or {}),
        }
        | ({"rolloutStrategy": strategy} if strategy else {})
        | spec,
    }
