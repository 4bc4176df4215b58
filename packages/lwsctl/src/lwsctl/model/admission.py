"""Explains whether a pod that is not scheduled waits for quota, a node, or other pods of its group. Pure.

The input is a pod object. The output is one sentence, or an empty string if the pod does not wait.
"""

from collections.abc import Callable, Mapping
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels


def gate_reason(pod: JSONObject) -> str:
    """Return what the pod waits for. Quota is first, because it blocks all other conditions.

    >>> gate_reason({"spec": {"schedulingGates": [{"name": "example.com/a"}, {"name": "example.com/b"}]}})
    'waits for the scheduling gates example.com/a, example.com/b'
    """
    spec = meta.spec(pod)
    gates = [gate.get("name", "") for gate in spec.get("schedulingGates") or []]
    describe = next((words for gate, words in KNOWN.items() if gate in gates), None)
    if describe is not None:
        return describe(pod)
    if gates:
        return f"waits for the scheduling gate{'s' if len(gates) > 1 else ''} {', '.join(gates)}"
    group = (spec.get("schedulingGroup") or {}).get("podGroupName", "")
    if group and not spec.get("nodeName") and meta.find_condition(pod, "PodScheduled") is None:
        return f"waits for PodGroup {group}, whose pods are scheduled together"
    return ""


def _quota_reason(pod: JSONObject) -> str:
    queue = meta.labels(pod).get(labels.QUEUE_NAME, "")
    return f"waits for quota in queue {queue} (Kueue)" if queue else "waits for quota (Kueue)"


def _topology_reason(_pod: JSONObject) -> str:
    return "waits until Kueue selects its node"


def _group_reason(pod: JSONObject) -> str:
    size = meta.annotations(pod).get(labels.SIZE, "")
    return f"waits until all {size} pods of its group fit on the nodes"


def _replacement_reason(pod: JSONObject) -> str:
    replaced = meta.annotations(pod).get(labels.REPLACES, "")
    return (
        f"waits until the group of {replaced} has terminated" if replaced else "waits for its turn to replace a group"
    )


KNOWN: Final[Mapping[str, Callable[[JSONObject], str]]] = {
    labels.QUOTA_GATE: _quota_reason,
    labels.TOPOLOGY_GATE: _topology_reason,
    labels.GANG_GATE: _group_reason,
    labels.REPLACEMENT_GATE: _replacement_reason,
}
"""Scheduling gates that have specific sentences, in the order of their removal."""
