"""Builds situations that cloud components cause: autoscalers, storage drivers, and kubelets that reject pods."""

from typing import Any, Final

from tests.explanations.builders import (
    ago,
    conditions,
    container,
    event,
    node,
    observed,
    pending,
    placed,
    pod,
    ready,
)
from tests.explanations.situations import GPUS

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CORE_EVENTS, NODES, PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES, Resource
from lwsctl.diagnosis.observed import Observed

SHORT: Final = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."


def awaiting_node(*events: JSONObject, message: str = SHORT, objects: dict[Resource, Any] | None = None) -> Observed:
    """Return an unschedulable leader with these events."""
    small = {NODES: [node(allocatable={"nvidia.com/gpu": "4"})], CORE_EVENTS: list(events)}
    return pending(message, spec=GPUS, objects=small | (objects or {}))


def creating(*events: JSONObject, made: float = 600, **fields: Any) -> Observed:
    """Return a leader on node-0 whose container is being created, with these events."""
    status = {
        "phase": "Pending",
        "conditions": conditions(PodScheduled="True", Ready="False"),
        "containerStatuses": [container(waiting={"reason": "ContainerCreating"})],
    }
    objects = fields.pop("objects", {})
    return observed([placed(made=made, status=status, **fields)], {CORE_EVENTS: list(events)} | objects)


def refused_by_kubelet(reason: str, message: str, count: int = 1) -> Observed:
    """Return a leader that is waiting because a kubelet rejected `count` pods with its name."""
    refusals = [
        event("Pod", "web-0", reason, message, uid=f"former-{number}", seconds=10 * number + 5)
        | {"source": {"component": "kubelet", "host": "node-7"}}
        for number in range(count)
    ]
    return observed([pod(made=3)], {CORE_EVENTS: refusals})


DEVICES: Final = (
    "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. "
    "Requested: 8, Available: 6, which is unexpected"
)

CLAIM: Final = "models"
MOUNTED: Final = {"volumes": [{"name": "models", "persistentVolumeClaim": {"claimName": CLAIM}}]}
MULTI_ATTACH: Final = 'Multi-Attach error for volume "pvc-1b2c" Volume is already exclusively attached to one node and can\'t be attached to another'


def shared_claim(*others: JSONObject) -> Observed:
    """Return a leader whose ReadWriteOnce claim is attached to a different node. `others` contains more pods."""
    claim = {
        "metadata": {"name": CLAIM},
        "spec": {"accessModes": ["ReadWriteOnce"], "volumeName": "pvc-1b2c"},
        "status": {"phase": "Bound"},
    }
    attaching = event("Pod", "web-0", "FailedAttachVolume", MULTI_ATTACH, seconds=200)
    status = {"phase": "Pending", "containerStatuses": [container(waiting={"reason": "ContainerCreating"})]}
    leader = placed(spec=MOUNTED, status=status)
    return observed([leader, *others], {CORE_EVENTS: [attaching], PERSISTENT_VOLUME_CLAIMS: [claim]})


def over_quota() -> Observed:
    """Return a leader whose claim a storage driver cannot provision, because a cloud quota is exceeded."""
    message = (
        'failed to provision volume with StorageClass "fast": rpc error: code = ResourceExhausted desc = '
        "Quota 'SSD_TOTAL_GB' exceeded. Limit: 5000.0 in region us-x"
    )
    return pending(
        "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
        spec=MOUNTED,
        made=30,
        objects={
            STORAGE_CLASSES: [{"metadata": {"name": "fast"}}],
            PERSISTENT_VOLUME_CLAIMS: [{"metadata": {"name": CLAIM}, "spec": {"storageClassName": "fast"}}],
            CORE_EVENTS: [event("PersistentVolumeClaim", CLAIM, "ProvisioningFailed", message, seconds=100)],
        },
    )


def injected_sidecar(made: float = 60, **state: Any) -> Observed:
    """Return a leader whose injected proxy is not ready, so that its main container does not start."""
    text = 'Startup probe failed: Get "http://10.0.0.7:15021/healthz/ready": dial tcp 10.0.0.7:15021: connect: connection refused'
    proxy = {"name": "istio-proxy", "image": "proxy:1", "restartPolicy": "Always"}
    status = {
        "phase": "Pending",
        "conditions": conditions(PodScheduled="True", Ready="False"),
        "initContainerStatuses": [container("istio-proxy", **(state or {"running": {"startedAt": ago(55)}}))],
        "containerStatuses": [container(waiting={"reason": "PodInitializing"})],
    }
    leader = placed(made=made, spec={"initContainers": [proxy]}, status=status)
    return observed([leader, ready(0, 1)], {CORE_EVENTS: [event("Pod", "web-0", "Unhealthy", text)]})
