"""Defines the preferred nodes for pods of a new group, which only capabilities provide.

A leader gets its preferences when its gate is removed, because it is scheduled only after that. Workers get them from
annotations of their template.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from kuberuntime.objects.meta import JSONObject

PREFERENCES: Final = "preferredDuringSchedulingIgnoredDuringExecution"

Prefer: TypeAlias = Callable[[JSONObject, JSONObject, JSONObject | None], list[JSONObject]]
"""Returns the preferences for a leader, based on the LeaderWorkerSet, the leader and the group record."""


def prefer_none(_obj: JSONObject, _leader: JSONObject, _record: JSONObject | None) -> list[JSONObject]:
    """Return no preferences."""
    return []
