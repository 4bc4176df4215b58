"""Assigns pods to subgroups, with labels and affinity (R-ADM-8 to R-ADM-13).

Templates contain the settings as annotations: size and type of the subgroups, and the topology key of exclusive
subgroups. At admission, these and the index in the group determine the subgroup of a pod.
"""

from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.policytypes import WITHOUT_LEADER, SubGroupPolicyType
from leaderworkerset.core.policies.celmutations import (
    IS_LEADER,
    LABELS,
    LEADER,
    PodRule,
    add_label,
    annotation,
    conditional_patches,
    has_annotation,
    label,
    list_literal,
    number,
    string_literal,
)
from leaderworkerset.core.policies.exclusive import patch_rule, term_rule, with_exclusive_terms
from leaderworkerset.core.policies.identity import JOINT, group_hash, is_joined
from leaderworkerset.core.policies.numbers import read_annotation
from leaderworkerset.core.policies.podedits import non_empty, with_labels
from leaderworkerset.core.policies.policy import DeniedError, Member, Policy, Template


def subgroup_index(size: int, subgroup_size: int, worker_index: int) -> int:
    """Return the subgroup of a worker (R-ADM-12).

    If only the number of workers is divisible by the subgroup size, the leader joins the first subgroup as an extra
    pod, and the count of workers starts at the first worker.

    >>> [subgroup_index(5, 2, worker) for worker in (1, 2, 3, 4)]
    [0, 0, 1, 1]
    """
    leader_is_extra = (size - 1) % subgroup_size == 0 and size % subgroup_size != 0
    return (worker_index - 1 if leader_is_extra else worker_index) // subgroup_size


def add_leader_to_subgroup(pod: JSONObject) -> JSONObject:
    """Return the leader as a member of subgroup 0, unless it is not in a subgroup (R-ADM-8, R-ADM-9)."""
    excluded = meta.annotations(pod).get(labels.SUBGROUP_POLICY_TYPE) in WITHOUT_LEADER
    if excluded or not _needs_subgroup(pod):
        return pod
    return _add_to_subgroup(pod, index=0, leader=meta.name(pod))


def add_worker_to_subgroup(pod: JSONObject, *, size: int, worker_index: int) -> JSONObject:
    """Return the worker as a member of its subgroup, if subgroups are configured (R-ADM-11 to R-ADM-13)."""
    if not _needs_subgroup(pod):
        return pod
    subgroup_size = read_annotation(pod, labels.SUBGROUP_SIZE)
    if subgroup_size < 1:
        raise DeniedError(f"annotation {labels.SUBGROUP_SIZE} of pod {meta.name(pod)} must be at least 1")
    index = subgroup_index(size, subgroup_size, worker_index)
    return _add_to_subgroup(pod, index=index, leader=meta.annotations(pod).get(labels.LEADER_NAME, ""))


def _needs_subgroup(pod: JSONObject) -> bool:
    return labels.SUBGROUP_SIZE in meta.annotations(pod) and not meta.labels(pod).get(labels.SUBGROUP_INDEX)


def _add_to_subgroup(pod: JSONObject, *, index: int, leader: str) -> JSONObject:
    group_key = meta.labels(pod).get(labels.GROUP_KEY, "")
    if is_joined(group_key):
        key = f"{group_key}{JOINT}{index}"
    else:
        key = group_hash(group_key if groupname.has_random_key(pod) else leader, str(index))
    joined = with_labels(pod, {labels.SUBGROUP_INDEX: str(index), labels.SUBGROUP_KEY: key})
    topology_key = meta.annotations(pod).get(labels.SUBGROUP_EXCLUSIVE_TOPOLOGY)
    if topology_key is None:
        return joined
    return with_exclusive_terms(joined, key=labels.SUBGROUP_KEY, value=key, topology_key=topology_key)


def annotations(template: Template) -> dict[str, str]:
    """Return the annotations for subgroup size, type and topology key, or an empty map if there are no subgroups."""
    policy = template.spec.sub_group_policy
    if policy is None:
        return {}
    kind = (policy.sub_group_policy_type or SubGroupPolicyType.LEADER_WORKER).value
    size = {} if policy.sub_group_size is None else {labels.SUBGROUP_SIZE: str(policy.sub_group_size)}
    topology = non_empty(template.live, labels.SUBGROUP_EXCLUSIVE_TOPOLOGY)
    return {labels.SUBGROUP_POLICY_TYPE: kind} | size | topology


def admit(pod: JSONObject, member: Member) -> JSONObject:
    """Return the pod as a member of its subgroup."""
    if member.is_leader:
        return add_leader_to_subgroup(pod)
    return add_worker_to_subgroup(pod, size=member.size, worker_index=member.worker_index)


_IS_SET: Final = has_annotation(labels.SUBGROUP_SIZE)
_EXCLUDED: Final = f"{LEADER} && {annotation(labels.SUBGROUP_POLICY_TYPE)} in {list_literal(WITHOUT_LEADER)}"
_SIZE: Final = number(labels.SUBGROUP_SIZE)
_IS_EXTRA: Final = f"({number(labels.SIZE)} - 1) % {_SIZE} == 0 && {number(labels.SIZE)} % {_SIZE} != 0"
_TERMS: Final = "variables.groupTerms + variables.subgroupTerms"

RULE: Final = PodRule(
    conditions={
        # A group with a hashed key has hashed subgroup keys, and workers have ordinals starting at 1.
        "subgroup-key-is-joined": f"!({_IS_SET}) || {_SIZE} >= 1"
        f" && {LABELS}[?{string_literal(labels.GROUP_KEY)}].orValue({string_literal(JOINT)}).contains({string_literal(JOINT)})"
        f' && ({IS_LEADER} || !object.metadata.name.endsWith("-0"))',
    },
    variables={
        "joinsSubgroup": f'{_IS_SET} && {label(labels.SUBGROUP_INDEX)} == "" && !({_EXCLUDED})',
        "subgroupIndex": f"!variables.joinsSubgroup || {LEADER} ? 0"
        f" : (variables.ordinal - ({_IS_EXTRA} ? 1 : 0)) / {_SIZE}",
        "subgroupKey": f"variables.groupKey + {string_literal(JOINT)} + string(variables.subgroupIndex)",
        "subgroupTerms": "variables.groupTerms.exists(term, term.topologyKey =="
        f" {annotation(labels.SUBGROUP_EXCLUSIVE_TOPOLOGY)}) ? [] : "
        + term_rule(
            "variables.joinsSubgroup",
            key=labels.SUBGROUP_KEY,
            value="variables.subgroupKey",
            topology=labels.SUBGROUP_EXCLUSIVE_TOPOLOGY,
        ),
    },
    patches=(
        conditional_patches(
            "variables.joinsSubgroup",
            add_label(labels.SUBGROUP_INDEX, "string(variables.subgroupIndex)"),
            add_label(labels.SUBGROUP_KEY, "variables.subgroupKey"),
        ),
        patch_rule(_TERMS),
    ),
)

POLICY: Final = Policy(annotations=annotations, admit=admit, rule=RULE)
