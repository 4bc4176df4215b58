"""The nodes that the pods of a new group prefer: none, unless a capability knows some.

A leader learns it when its gate opens, as it has a node only after that; workers by annotations of their template.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from msgspec import Struct

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet

PREFERENCES: Final = "preferredDuringSchedulingIgnoredDuringExecution"

Prefer: TypeAlias = Callable[[JSONObject, JSONObject, JSONObject | None], list[JSONObject]]
"""Returns all preferences of a leader, empty if none is added: from the LeaderWorkerSet, the leader, the record of its group."""


class NodePlacement(Struct, frozen=True, kw_only=True):
    """The functions of a capability that knows nodes.

    `marks` returns the annotations of the leaders' template, from the LeaderWorkerSet and the template of this revision
    that exists; `worker_annotations` those of the workers' template, from the LeaderWorkerSet and the record of the
    group.
    """

    marks: Callable[[LeaderWorkerSet, JSONObject | None], dict[str, str]] = lambda _lws, _template: {}
    prefer: Prefer = lambda _obj, _leader, _record: []
    worker_annotations: Callable[[JSONObject, JSONObject | None], Mapping[str, str]] = lambda _obj, _record: {}


NO_PLACEMENT: Final = NodePlacement()
