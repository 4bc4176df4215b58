"""The preferred nodes for pods of a new group, which only capabilities provide.

A leader gets its preferences when its gate is removed, because it is scheduled only after that. Workers get them from
annotations of their template.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from msgspec import Struct

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet

PREFERENCES: Final = "preferredDuringSchedulingIgnoredDuringExecution"

Prefer: TypeAlias = Callable[[JSONObject, JSONObject, JSONObject | None], list[JSONObject]]
"""Returns the preferences for a leader, based on the LeaderWorkerSet, the leader and the group record."""


class NodePlacement(Struct, frozen=True, kw_only=True):
    """The functions of a capability that provides node preferences.

    `marks` returns the annotations of the leaders' template, from the LeaderWorkerSet and the existing template of this
    revision. `worker_annotations` returns the annotations of the workers' template, from the LeaderWorkerSet and the
    group's record.
    """

    marks: Callable[[LeaderWorkerSet, JSONObject | None], dict[str, str]] = lambda _lws, _template: {}
    prefer: Prefer = lambda _obj, _leader, _record: []
    worker_annotations: Callable[[JSONObject, JSONObject | None], Mapping[str, str]] = lambda _obj, _record: {}


NO_PLACEMENT: Final = NodePlacement()
