"""Finds nodes that an autoscaler adds for a pod, or why it adds no nodes, from the events of the pod. Pure.

The input is the events about the pod, of any type. Autoscalers are recognized by reasons and messages, not by their
names, because managed clusters rename them. The latest event is used. The output is a `NodeRequest`, and its text for
WHY.
"""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from kuberuntime.objects.duration import human
from kuberuntime.texts.wording import join_names
from lwsctl.model.events.eventrecord import WarningEvent

NODE_PATIENCE: Final = timedelta(minutes=15)
"""The default time until a new node runs pods."""

ADDED: Final = frozenset({"TriggeredScaleUp", "Nominated"})
REJECTIONS: Final = frozenset({"NotTriggerScaleUp", "FailedScaleUp", "FailedScheduling"})

FAILED_SCHEDULING: Final = re.compile(r"Failed to schedule pod,\s*(?P<why>.*)")
"""The pattern of Karpenter's message. kube-scheduler uses the same reason with different messages."""

NOT_TRIGGERED: Final = re.compile(r"pod didn't trigger scale-up:?\s*(?P<why>.*)")
SCALED: Final = re.compile(r"\{(?:\S*/)?(?P<group>[^\s/]+) (?P<old>\d+)->(?P<new>\d+) \(max: (?P<most>\d+)\)\}")
NOMINATED: Final = re.compile(r"\b(?P<kind>nodeclaim|node|machine)/(?P<name>[^\s,]+)")
KINDS: Final = {"nodeclaim": "NodeClaim", "node": "node", "machine": "Machine"}

NAMED: Final = 3


class NodeRequest(Struct, frozen=True, kw_only=True):
    """The latest response of the autoscaler for a pod, which is the nodes that it adds, or why it adds none."""

    component: str
    what: str
    last: datetime
    is_refused: bool = False
    claims: tuple[str, ...] = ()
    """The names of the NodeClaims that Karpenter created for the pod."""


def node_request(events: Iterable[WarningEvent]) -> NodeRequest | None:
    """Return the latest response of the autoscaler for a pod, based on the events of the pod."""
    responses = [response for event in events if (response := _node_request(event)) is not None]
    return max(responses, key=lambda response: (response.last, response.is_refused), default=None)


def _node_request(event: WarningEvent) -> NodeRequest | None:
    component = event.component or "the autoscaler"
    if event.reason in ADDED:
        claims = tuple(match["name"] for match in NOMINATED.finditer(event.message) if match["kind"] == "nodeclaim")
        return NodeRequest(component=component, what=_parse_nodes(event.message), last=event.last, claims=claims)
    if event.reason not in REJECTIONS:
        return None
    pattern = FAILED_SCHEDULING if event.reason == "FailedScheduling" else NOT_TRIGGERED
    match = pattern.search(event.message)
    if match is None and event.reason == "FailedScheduling":
        return None
    why = (match["why"] if match else event.message) or "no node group is suitable for the pod"
    return NodeRequest(component=component, what=why, last=event.last, is_refused=True)


def _parse_nodes(message: str) -> str:
    """Return the nodes in a message, which are node groups with their sizes or names of NodeClaims.

    >>> _parse_nodes("pod triggered scale-up: [{https://x/instanceGroups/gpu-a 0->2 (max: 8)}]")
    'gpu-a 0 to 2 of at most 8'
    >>> _parse_nodes("Pod should schedule on: nodeclaim/gpu-x7k2p")
    'NodeClaim gpu-x7k2p'
    """
    groups = [
        f"{scaled['group']} {scaled['old']} to {scaled['new']} of at most {scaled['most']}"
        for scaled in SCALED.finditer(message)
    ]
    names = [f"{KINDS[target['kind']]} {target['name']}" for target in NOMINATED.finditer(message)]
    return join_names(groups or names, NAMED) or message


def added_text(request: NodeRequest, now: datetime) -> str:
    """Return the nodes that an autoscaler adds, and the elapsed time."""
    return f"{request.component} is adding nodes ({request.what}, {human(now - request.last)} ago)"
