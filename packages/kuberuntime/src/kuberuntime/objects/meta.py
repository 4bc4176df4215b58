"""Provides accessors and predicates for metadata and other fields of all Kubernetes objects.

Objects are plain dictionaries (`JSONObject`), so that reading an object never loses a field. Functions read such
dictionaries and do not modify their arguments.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, NewType, TypeAlias, TypedDict

JSON: TypeAlias = Any
"""A JSON value of the API."""

JSONObject: TypeAlias = dict[str, Any]
"""A JSON object of the API. Treat it as immutable."""

UID = NewType("UID", str)
ResourceVersion = NewType("ResourceVersion", str)


_NONE: Final[Mapping[str, Any]] = MappingProxyType({})
"""The default for objects without metadata. For performance, accessors read the field and do not call `metadata`."""


class ObjectKey(NamedTuple):
    """An object key, which consists of a namespace (empty for cluster-scoped kinds) and a name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class OwnerReference(TypedDict, total=False):
    """An entry of the `metadata.ownerReferences` field."""

    apiVersion: str
    kind: str
    name: str
    uid: str
    controller: bool
    blockOwnerDeletion: bool


def at(obj: JSONObject, path: Iterable[str]) -> JSON:
    """Return the value of a field, or None if it is absent."""
    value: JSON = obj
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def metadata(obj: Mapping[str, Any]) -> JSONObject:
    """Return `metadata`, or an empty object if it is absent or null."""
    return obj.get("metadata") or {}


def spec(obj: Mapping[str, Any]) -> JSONObject:
    """Return `spec`, or an empty object if it is absent or null."""
    return obj.get("spec") or {}


def status(obj: Mapping[str, Any]) -> JSONObject:
    """Return `status`, or an empty object if it is absent or null."""
    return obj.get("status") or {}


def parts(obj: Mapping[str, Any]) -> tuple[JSONObject, JSONObject, JSONObject]:
    """Return `metadata`, `spec` and `status`. Each is an empty object if it is absent or null."""
    return obj.get("metadata") or {}, obj.get("spec") or {}, obj.get("status") or {}


def name(obj: Mapping[str, Any]) -> str:
    """Return `metadata.name`, or an empty string if it is absent."""
    return str((obj.get("metadata") or _NONE).get("name") or "")


def namespace(obj: Mapping[str, Any]) -> str:
    """Return `metadata.namespace`, or an empty string if it is absent."""
    return str((obj.get("metadata") or _NONE).get("namespace") or "")


def key(obj: Mapping[str, Any]) -> ObjectKey:
    """Return the namespace and name of the object."""
    identity = obj.get("metadata") or _NONE
    return ObjectKey(str(identity.get("namespace") or ""), str(identity.get("name") or ""))


def uid(obj: Mapping[str, Any]) -> UID:
    """Return `metadata.uid`, or an empty string if it is absent."""
    return UID(str((obj.get("metadata") or _NONE).get("uid") or ""))


def resource_version(obj: Mapping[str, Any]) -> ResourceVersion:
    """Return `metadata.resourceVersion`, or an empty string if it is absent."""
    return ResourceVersion(str((obj.get("metadata") or _NONE).get("resourceVersion") or ""))


def generation(obj: Mapping[str, Any]) -> int:
    """Return `metadata.generation`, or 0 if it is absent."""
    return int(metadata(obj).get("generation") or 0)


def is_observed(obj: Mapping[str, Any]) -> bool:
    """Return whether `status.observedGeneration` equals `metadata.generation`, so that the status is current."""
    return bool(status(obj).get("observedGeneration") == generation(obj))


def labels(obj: Mapping[str, Any]) -> dict[str, str]:
    """Return `metadata.labels`, or an empty map if it is absent."""
    return (obj.get("metadata") or _NONE).get("labels") or {}


def annotations(obj: Mapping[str, Any]) -> dict[str, str]:
    """Return `metadata.annotations`, or an empty map if it is absent."""
    return (obj.get("metadata") or _NONE).get("annotations") or {}


def is_deleting(obj: Mapping[str, Any]) -> bool:
    """Return whether the object has a deletion timestamp."""
    return (obj.get("metadata") or _NONE).get("deletionTimestamp") is not None


def creation_timestamp(obj: Mapping[str, Any]) -> str:
    """Return the creation timestamp, or an empty string before the object is created."""
    return str((obj.get("metadata") or _NONE).get("creationTimestamp") or "")


def by_age(obj: Mapping[str, Any]) -> tuple[str, str]:
    """Return a sort key, which orders objects by their creation in seconds, and then by name."""
    return creation_timestamp(obj), name(obj)


def owners(obj: Mapping[str, Any]) -> list[OwnerReference]:
    """Return the owner references."""
    return (obj.get("metadata") or _NONE).get("ownerReferences") or []


def controller_of(obj: Mapping[str, Any]) -> OwnerReference | None:
    """Return the owner reference to the controller, or None if there is no controller."""
    references: list[OwnerReference] = (obj.get("metadata") or _NONE).get("ownerReferences") or []
    for reference in references:  # a loop, because this function is called often and `next` is half as fast
        if reference.get("controller"):
            return reference
    return None


def is_controlled(obj: Mapping[str, Any], owner: Mapping[str, Any]) -> bool:
    """Return whether `owner` controls `obj`. A different object with the same name is not the owner."""
    controller = controller_of(obj)
    return controller is not None and controller["uid"] == uid(owner)


def is_of_predecessor(obj: Mapping[str, Any], owner: Mapping[str, Any]) -> bool:
    """Return whether the controller of `obj` is a deleted object with the kind and name of `owner`.

    The garbage collector deletes such an object soon. Until then, it is not related to `owner`.
    """
    controller = controller_of(obj)
    if controller is None or controller["uid"] == uid(owner):
        return False
    return (controller["kind"], controller["name"]) == (owner["kind"], name(owner))


def foreign_controller(obj: Mapping[str, Any], owner: Mapping[str, Any]) -> OwnerReference | None:
    """Return the controller of `obj`, or None if it is `owner` or a deleted object with the same name."""
    controller = controller_of(obj)
    if controller is None or (controller["kind"], controller["name"]) == (owner["kind"], name(owner)):
        return None
    return controller


def describe_controller(obj: Mapping[str, Any]) -> str:
    """Return a phrase that describes the controller of `obj`, for the end of a message."""
    controller = controller_of(obj)
    return f"is controlled by {controller['kind']} {controller['name']}" if controller else "has no controller"


def controller_reference(owner: Mapping[str, Any]) -> OwnerReference:
    """Build a controller reference to `owner` that blocks the foreground deletion of the owner."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name(owner),
        "uid": uid(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def find_condition(obj: Mapping[str, Any], condition_type: str) -> JSONObject | None:
    """Return the condition with this type, or None if it does not exist."""
    conditions: list[JSONObject] = status(obj).get("conditions") or []
    return next((condition for condition in conditions if condition.get("type") == condition_type), None)


def with_condition(obj: Mapping[str, Any], condition: JSONObject, moment: str) -> list[JSONObject]:
    """Return the conditions of the object with a new condition. Its transition time changes only with its status.

    >>> with_condition({}, {"type": "Ready", "status": "True"}, "2026-01-01T00:00:00Z")
    [{'type': 'Ready', 'status': 'True', 'lastTransitionTime': '2026-01-01T00:00:00Z'}]
    """
    previous = find_condition(obj, condition["type"]) or {}
    since = previous.get("lastTransitionTime") if previous.get("status") == condition["status"] else None
    others = [other for other in status(obj).get("conditions") or [] if other["type"] != condition["type"]]
    return [*others, condition | {"lastTransitionTime": since or moment}]


def is_condition_true(obj: Mapping[str, Any], condition_type: str) -> bool:
    """Return whether the condition with this type exists and is `True`."""
    condition = find_condition(obj, condition_type)
    return condition is not None and condition.get("status") == "True"
