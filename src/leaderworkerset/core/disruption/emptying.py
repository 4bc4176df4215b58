"""Nodes that are being emptied: cordoned ones, and those with a taint that keeps the pod away."""

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.placement import REPELLING, read_tolerations, tolerate


def is_closed(node: JSONObject) -> bool:
    """Return whether a node accepts no pods, or not all."""
    return bool(meta.spec(node).get("unschedulable")) or bool(_taints(node))


def wants_to_lose(node: JSONObject, pod: JSONObject) -> bool:
    """Return whether a node that is closed would not accept the pod again."""
    if meta.spec(node).get("unschedulable"):
        return True
    return not tolerate(read_tolerations(meta.spec(pod)), _taints(node))


def _taints(node: JSONObject) -> list[JSONObject]:
    return [taint for taint in meta.spec(node).get("taints") or [] if taint.get("effect") in REPELLING]
