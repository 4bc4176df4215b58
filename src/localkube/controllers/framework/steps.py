"""What the embedded controllers do: the actions of `api.plan`, and a guarded merge patch beside them."""

from dataclasses import dataclass
from typing import TypeAlias

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import Resource
from kuberuntime.plan import Action, Effect


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePatch(Effect):
    """Patch one object, or one of its subresources; `patch` carries the UID and version the decision was made on."""

    key: ObjectKey
    patch: JSONObject
    subresource: str = ""


Step: TypeAlias = Action | MergePatch

Steps: TypeAlias = tuple[Step, ...]
"""Steps in order; the first failure ends them."""


def guarded_patch(resource: Resource, obj: JSONObject, change: JSONObject, *, subresource: str = "") -> MergePatch:
    """Change parts of an object, only if it is still the one that was seen."""
    guard = {"uid": meta.uid(obj), "resourceVersion": meta.resource_version(obj)}
    patch = change | {"metadata": guard | meta.metadata(change)}
    return MergePatch(resource=resource, key=meta.key(obj), patch=patch, subresource=subresource)
