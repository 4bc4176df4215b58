"""Adds a gate to leaders with random keys. It delays their scheduling until the group can be scheduled (N-ADM-4).

Until then, a ReplicaSet that is scaled down deletes this leader first, because its deletion cost is the lowest. If
`spec.scheduling` is set, leaders with an index also have the gate (N-ADM-9).
"""

from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import groupname, labels
from leaderworkerset.core.policies.celmutations import PodRule
from leaderworkerset.core.policies.identity import NOT_RANDOM
from leaderworkerset.core.policies.podedits import with_annotations, with_spec
from leaderworkerset.core.policies.policy import Member, Policy

GATED_COST: Final = "-100"
"""The pod deletion cost of a gated leader, unless the user set a cost."""


def is_gated(leader: JSONObject) -> bool:
    """Return whether the leader has the gate."""
    return any(gate["name"] == labels.REPLACEMENT_GATE for gate in meta.spec(leader).get("schedulingGates") or [])


def admit(pod: JSONObject, member: Member) -> JSONObject:
    """Add the gate to a leader with a random key. The controller removes the gate, regardless of the policy."""
    if not member.is_leader or not groupname.has_random_key(pod):
        return pod
    if labels.POD_DELETION_COST not in meta.annotations(pod):
        pod = with_annotations(pod, {labels.POD_DELETION_COST: GATED_COST})
    return with_gate(pod)


def with_gate(pod: JSONObject) -> JSONObject:
    """Return the pod with the gate."""
    if is_gated(pod):
        return pod
    gates = meta.spec(pod).get("schedulingGates") or []
    return with_spec(pod, {"schedulingGates": [*gates, {"name": labels.REPLACEMENT_GATE}]})


POLICY: Final = Policy(admit=admit, rule=PodRule(conditions=NOT_RANDOM))
