"""Defines bugs of groups with random keys, mostly from upstream's code review (contract N-AT-1 to N-AT-8)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from msgspec.structs import replace

from kuberuntime.objects import meta
from leaderworkerset.api import labels
from leaderworkerset.core.leaderworkerset import deploymentleaders, gatedleaders, groupstate, revisions
from leaderworkerset.core.policies import identity


def trusts_old_counts() -> Any:
    """Use the counts of a Deployment for its newest spec. The set is then available before its update (N-AT-1)."""
    real = deploymentleaders.assess

    def assess(lws: Any, leaders: Any, now: Any) -> Any:
        groups = [replace(group, revision=leaders.key, is_deleting=False) for group in leaders.groups]
        with patch.object(deploymentleaders, "is_current", lambda leaders: True):
            return real(lws, replace(leaders, groups=groups), now)

    return patch.object(deploymentleaders, "assess", assess)


def draws_another_key() -> Any:
    """Generate a new key for a leader that was already admitted (N-AT-3)."""
    real = identity._admit_hash

    def admit(pod: Any, own: Any, member: Any) -> Any:
        once = real(pod, own, member)
        forgotten = {name: value for name, value in meta.labels(once).items() if name != labels.GROUP_INDEX}
        return real(once, forgotten, replace(member, request=f"{member.request} again"))

    return patch.object(identity, "_admit_hash", admit)


def waits_for_surplus() -> Any:
    """Also delay replacements until scaled-down groups are deleted (N-AT-5)."""
    real = gatedleaders.decide

    def decide(obj: Any, lws: Any, key: str, groups: Any, gated: Any, records: Any) -> Any:
        return real(obj, lws, key, groups, replace(gated, surplus={}), records)

    return patch.object(gatedleaders, "decide", decide)


def never_ends_an_update() -> Any:
    """Report an update while a group is unready (N-AT-7)."""
    real = deploymentleaders.assess

    def assess(lws: Any, leaders: Any, now: Any) -> Any:
        return real(lws, replace(leaders, key="none", has_older=True), now)

    return patch.object(deploymentleaders, "assess", assess)


@contextmanager
def builds_by_the_live_size() -> Iterator[None]:
    """Build workers of groups with an older revision from the current spec (N-AT-8)."""

    real = revisions.find_revision

    def find(known: Any, key: str) -> Any:
        return max(known, key=lambda one: one["revision"], default=real(known, key))

    with patch.object(groupstate, "original_size", lambda leader: 0), patch.object(revisions, "find_revision", find):
        yield
