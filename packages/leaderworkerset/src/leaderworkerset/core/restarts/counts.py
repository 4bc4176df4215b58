"""Reads and writes the restart counts in the `group-restart-counts` annotation (N-RB-1, N-RB-10).

Input: the LeaderWorkerSet. Output: a number for each `<revision>/<group>`, and the patch that stores new numbers. No
group is restarted while the annotation cannot be read, because its used restarts are unknown.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from kuberuntime.objects import decimals, meta
from kuberuntime.objects.gotypes.canonicaljson import canonical_json
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Patch, guarded_patch
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.resources import LEADERWORKERSETS

HIGHEST: Final = 2**31 - 1
"""The maximum count, which is a 32-bit integer."""


class Key(NamedTuple):
    """A group at one revision. `group` is its index or its random key."""

    revision: str
    group: str

    @classmethod
    def from_leader(cls, leader: JSONObject) -> "Key":
        """Return the key for the restart count of a leader's group."""
        return cls(groupname.revision_key(leader), groupname.group_label(leader))

    def __str__(self) -> str:
        return f"{self.revision}/{self.group}"

    @property
    def ordinal(self) -> int:
        """Return the group as an index. Raise ValueError if it is not a number."""
        index = decimals.natural(self.group)
        if index is None:
            raise ValueError(f'invalid group restart count key "{self}"')
        return index


Counts = Mapping[Key, int]


def read(obj: JSONObject) -> dict[Key, int]:
    """Return the counts of a LeaderWorkerSet. Raise ValueError if the annotation is invalid (N-RB-10)."""
    text = meta.annotations(obj).get(labels.GROUP_RESTART_COUNTS, "")
    if not text:
        return {}
    try:
        counts = msgspec.json.decode(text, type=dict[str, int] | None)
    except msgspec.DecodeError as error:
        raise ValueError(f"annotation {labels.GROUP_RESTART_COUNTS}: invalid group restart counts: {error}") from error
    if counts is None:
        raise ValueError("invalid group restart counts: expected a JSON object")
    return {_key(key): _count(key, count) for key, count in counts.items()}


def require_unchanged(obj: JSONObject) -> Patch:
    """Return a patch without changes that fails if the LeaderWorkerSet has changed (N-RB-2).

    Two caches are not ordered relative to each other, so the LeaderWorkerSet cache may still show the old count of a
    recovered group.
    """
    return guarded_patch(LEADERWORKERSETS, obj, {})


def _key(text: str) -> Key:
    revision, slash, group = text.partition("/")
    if not slash:
        raise ValueError(f'invalid group restart count key "{text}"')
    return Key(revision, group)


def _count(key: str, count: int) -> int:
    if count < 0:
        raise ValueError(f'invalid group restart count for group "{key}": must be non-negative')
    if count > HIGHEST:
        raise ValueError(f'invalid group restart count for group "{key}": must not be more than {HIGHEST}')
    return count


def write(obj: JSONObject, counts: Counts) -> Patch:
    """Return a patch that stores the counts, or removes them if empty, unless the LeaderWorkerSet has changed."""
    text = canonical_json({str(key): count for key, count in counts.items()}).decode() if counts else None
    change = {"metadata": {"annotations": {labels.GROUP_RESTART_COUNTS: text}}}
    return guarded_patch(LEADERWORKERSETS, obj, change, if_present=True)
