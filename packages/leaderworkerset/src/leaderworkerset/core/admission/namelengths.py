"""Limits the length of LeaderWorkerSet names. Pod names and labels with at most 63 characters start with the name.

StatefulSets label their pods with their own name and the hash of their revision. The worker StatefulSet of a group is
named after the leader, so the label is `<name>-<index>-<hash>`. The hash has 8 to 10 characters. So a longer name may
work only for some revisions, or only for the first groups. If groupIdentity is Hash, the budget is fixed
(`identity_errors`).
"""

from collections.abc import Iterator
from typing import Final

from kuberuntime.objects import intstr
from kuberuntime.objects.field import FieldError, invalid
from leaderworkerset.api.leaderworkerset import MAX_REPLICAS, LeaderWorkerSet

LONGEST: Final = 63
SHORTEST_HASH: Final = 8
LONGEST_HASH: Final = 10

MORE_GROUPS: Final = 10
"""The growth factor for warnings. Names must be short enough for the desired groups times this factor."""


def errors(lws: LeaderWorkerSet) -> Iterator[FieldError]:
    """Return an error if a desired group cannot have all its pods because the name is too long."""
    most = _longest_name(lws, _digit_count(lws.spec.replicas), SHORTEST_HASH)
    if not lws.spec.group_identity.is_hash and most < len(lws.name) <= LONGEST:
        text = f"must be no more than {most} characters, because the names and labels of pods begin with it"
        yield invalid("metadata.name", lws.name, f"{text}, and labels have at most {LONGEST}")


def warnings(lws: LeaderWorkerSet) -> Iterator[str]:
    """Return a warning if a name is too long for some revisions or for many more groups."""
    if lws.spec.group_identity.is_hash or any(errors(lws)):
        return
    replicas, surge = lws.spec.replicas, lws.spec.rollout_strategy.rolling_update_configuration.max_surge
    groups = replicas + max(intstr.scale(surge, replicas, up=True), 0) if intstr.is_scalable(surge) else replicas
    length, most = len(lws.name), _longest_name(lws, _digit_count(groups), LONGEST_HASH)
    if length > most:
        yield (
            f"metadata.name: pods of some revisions may be rejected, because their labels can exceed {LONGEST} "
            f"characters. Use at most {most} characters instead of {length}"
        )
        return
    fitting = 10 ** (_digit_count(groups) + most - length)
    if lws.size > 1 and fitting < min(groups * MORE_GROUPS, MAX_REPLICAS):
        yield (
            f"metadata.name: only {fitting} groups are supported with {length} characters. For more groups, use a "
            "shorter name"
        )


def _digit_count(groups: int) -> int:
    """Return the number of digits of the highest index for a number of groups."""
    return len(str(max(groups - 1, 0)))


def _longest_name(lws: LeaderWorkerSet, digits: int, hash_length: int) -> int:
    """Return the maximum name length for these lengths of indexes and revision hashes."""
    if lws.size > 1:
        return LONGEST - len("-") - digits - len("-") - hash_length
    return LONGEST - len("-") - max(digits, hash_length)
