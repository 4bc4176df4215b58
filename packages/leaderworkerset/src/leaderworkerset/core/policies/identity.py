"""Sets the labels and annotations for the group size, index and key of each pod.

Templates contain the size (R-LSTS-4). Leaders are assigned the index and key of their group (R-ADM-4 to R-ADM-6), and
workers their index in the group (R-ADM-10). With `groupIdentity: Hash`, the key is random. It is also the index, and
the source of the leader's host name (N-ADM-1 to N-ADM-3), because the pod has no name yet.

A key is opaque. The webhook hashes the namespace and name of the leader. A MutatingAdmissionPolicy cannot compute a
hash, and joins the UID of the leader's controller and the index. Only the second form contains a hyphen. All pods of
a group have the same form.
"""

import hashlib
from typing import Final

from kuberuntime.objects import decimals, meta, ordinals
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.policytypes import WITH_RANDOM_KEYS
from leaderworkerset.core.policies.celmutations import (
    IS_LEADER,
    LEADER,
    PodRule,
    add_label,
    annotation,
    conditional_patches,
    has_label,
    label,
    list_literal,
    number,
    string_literal,
)
from leaderworkerset.core.policies.podedits import with_labels, with_spec
from leaderworkerset.core.policies.policy import DeniedError, Member, Policy, Template


def group_hash(*parts: str) -> str:
    """Return the key of a group or subgroup, which is the same for all its pods.

    >>> group_hash("default", "test-sample")
    '95e88034e460983f51a9952fe128729fbc0663b5'
    """
    return hashlib.sha1("/".join(parts).encode(), usedforsecurity=False).hexdigest()


def annotations(template: Template) -> dict[str, str]:
    """Return the group size."""
    return {labels.SIZE: str(template.spec.size)}


def admit(pod: JSONObject, member: Member) -> JSONObject:
    """Return the pod with its identity labels. Labels shared with the leader are in the worker template."""
    if not member.is_leader:
        return with_labels(pod, {labels.WORKER_INDEX: str(member.worker_index)})
    own = meta.labels(pod)
    if groupname.has_random_key(pod):
        return _admit_hash(pod, own, member)
    group_index = own[labels.GROUP_INDEX] if labels.GROUP_INDEX in own else str(ordinal(pod))
    group_key = own.get(labels.GROUP_KEY, group_hash(meta.namespace(pod), meta.name(pod)))
    return with_labels(pod, {labels.GROUP_INDEX: group_index, labels.GROUP_KEY: group_key})


def _admit_hash(pod: JSONObject, own: dict[str, str], member: Member) -> JSONObject:
    """Return the leader with a random key. A leader that was already admitted retains its key."""
    key = own.get(labels.GROUP_KEY, "")
    if not key or own.get(labels.GROUP_INDEX) != key:
        key = group_hash(meta.namespace(pod), member.request)
    labelled = with_labels(pod, {labels.GROUP_INDEX: key, labels.GROUP_KEY: key})
    if meta.spec(pod).get("hostname"):
        return labelled
    return with_spec(labelled, {"hostname": f"{own[labels.NAME]}-{key[: groupname.HOST_CHARACTERS]}"})


def ordinal(pod: JSONObject) -> int:
    """Return the ordinal in the pod name. Deny the pod if there is none."""
    parts = ordinals.split(meta.name(pod))
    if parts is None:
        raise DeniedError(f"parsing pod ordinal for pod {meta.name(pod)}")
    return parts.number


def is_joined(key: str) -> bool:
    """Return whether kube-apiserver joined a key instead of hashing it.

    >>> is_joined("2c1b6d0e-7f9e-4a3c-9f10-0d5b6f0f7a11-3"), is_joined("95e88034e460983f51a9952fe128729fbc0663b5")
    (True, False)
    """
    return JOINT in key


JOINT: Final = "-"

_ORDINAL: Final = 'int(object.metadata.name.substring(object.metadata.name.lastIndexOf("-") + 1))'
_CONTROLLERS: Final = "object.metadata.?ownerReferences.orValue([]).filter(owner, owner.?controller.orValue(false))"

NOT_RANDOM: Final = {
    "key-is-not-random": f"!({IS_LEADER} && {annotation(labels.GROUP_IDENTITY)} in {list_literal(WITH_RANDOM_KEYS)})"
}
"""Leaders with random keys are handled by the webhook, because policies cannot generate random keys."""

RULE: Final = PodRule(
    conditions={
        "has-size": f"{number(labels.SIZE)} <= {decimals.HIGHEST}",
        "has-ordinal": 'object.metadata.name.matches("-[0-9]{1,18}$")',
        **NOT_RANDOM,
        "has-group": f"{IS_LEADER} ? {has_label(labels.GROUP_KEY)} || size({_CONTROLLERS}) == 1"
        f" : {has_label(labels.GROUP_KEY)} && {has_label(labels.GROUP_INDEX)}",
    },
    variables={
        "isLeader": IS_LEADER,
        "ordinal": _ORDINAL,
        "groupIndex": f"{has_label(labels.GROUP_INDEX)} ? {label(labels.GROUP_INDEX)} : string(variables.ordinal)",
        "groupKey": f"{has_label(labels.GROUP_KEY)} ? {label(labels.GROUP_KEY)}"
        f" : {_CONTROLLERS}[0].uid + {string_literal(JOINT)} + variables.groupIndex",
        "workerIndex": f"{LEADER} ? {string_literal(labels.LEADER_WORKER_INDEX)} : string(variables.ordinal)",
    },
    patches=(
        conditional_patches(
            LEADER,
            add_label(labels.GROUP_INDEX, "variables.groupIndex"),
            add_label(labels.GROUP_KEY, "variables.groupKey"),
        ),
        conditional_patches(f"!{LEADER}", add_label(labels.WORKER_INDEX, "variables.workerIndex")),
    ),
)

POLICY: Final = Policy(annotations=annotations, admit=admit, rule=RULE)
