"""The one write that plans of the embedded controllers need beyond `api.plan`: a guarded merge patch."""

from dataclasses import dataclass
from typing import TypeAlias

from leaderworkerset.api import meta
from leaderworkerset.api.meta import JSONObject, ObjectKey
from leaderworkerset.api.plan import Create, Delete, Effect, Emit
from leaderworkerset.api.resources import Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePatch(Effect):
    """Patch one object; `patch` carries the UID and the resourceVersion the decision was made on."""

    key: ObjectKey
    patch: JSONObject


Step: TypeAlias = Create | Delete | MergePatch | Emit


def metadata_patch(resource: Resource, obj: JSONObject, change: JSONObject) -> MergePatch:
    """Change parts of `metadata` of an object, only if it is still the one that was seen."""
    guard = {"uid": meta.uid(obj), "resourceVersion": meta.resource_version(obj)}
    return MergePatch(resource=resource, key=meta.key(obj), patch={"metadata": guard | change})
