"""Represents the writes of executed plans as values, and describes them for errors and logs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from msgspec import Struct

from kuberuntime.errors import KubeError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import UID, JSONObject, ObjectKey, ResourceVersion
from kuberuntime.objects.resources import Resource
from kuberuntime.plan import (
    Apply,
    Create,
    Delete,
    DeleteCollection,
    Effect,
    Patch,
    Put,
    PutStatus,
    WriteAction,
)


@dataclass(frozen=True, slots=True)
class ObjectWrite:
    """An object was written and has at least this version. `object` is the response to an apply.

    `object` is empty for other writes, because a plan that creates a thousand objects would otherwise store all
    responses.
    """

    resource: Resource
    key: ObjectKey
    version: ResourceVersion
    object: JSONObject = field(default_factory=dict, compare=False, repr=False)


class ObjectRemoval(Struct, frozen=True):
    """The object with this UID is deleted or terminating. Without a UID, the object is identified by name."""

    resource: Resource
    key: ObjectKey
    uid: UID | None


Write: TypeAlias = ObjectWrite | ObjectRemoval

NAMED: Final = 3
"""The maximum number of writes in a summary."""

VERBS: Final[dict[type[Effect], str]] = {
    Apply: "apply",
    Create: "create",
    Patch: "patch",
    Put: "replace",
    PutStatus: "write the status of",
    Delete: "delete",
    DeleteCollection: "delete all",
}


def summary(writes: Sequence[Write]) -> list[str]:
    """Return a summary of the writes for the log.

    >>> from kuberuntime.objects.resources import PODS
    >>> summary([ObjectRemoval(PODS, ObjectKey("default", f"web-{index}"), None) for index in range(5)])
    ['deleted pods/web-0', 'deleted pods/web-1', 'deleted pods/web-2', '2 more']
    """
    verbs = ("deleted" if isinstance(write, ObjectRemoval) else "wrote" for write in writes)
    lines = [f"{verb} {write.resource.plural}/{write.key.name}" for verb, write in zip(verbs, writes, strict=True)]
    return lines if len(lines) <= NAMED else [*lines[:NAMED], f"{len(lines) - NAMED} more"]


def describe(action: WriteAction, error: KubeError) -> str:
    """Describe a failed write."""
    kind = action.resource.kind
    match action:
        case DeleteCollection(namespace=namespace):
            where = f"in {namespace}"
        case Delete(key=key) | Patch(key=key):
            where = str(key)
        case _:
            where = str(meta.key(action.object))
    if isinstance(action, Create | Patch | Put) and action.subresource:
        kind = f"{kind}/{action.subresource}"
    return f"{VERBS[type(action)]} {kind} {where}: {error}"
