"""Situations that other components of a cloud make: autoscalers, storage drivers, kubelets that refuse pods."""

from typing import Any, Final

from tests.explanations.builders import (
    conditions,
    container,
    node,
    observed,
    pending,
    placed,
)
from tests.explanations.situations import GPUS

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CORE_EVENTS, NODES, Resource
from leaderworkerset.diagnosis.observed import Observed

SHORT: Final = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."


def awaiting_node(*events: JSONObject, message: str = SHORT, objects: dict[Resource, Any] | None = None) -> Observed:
    """Return a leader that fits on no node, with these events of it."""
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
