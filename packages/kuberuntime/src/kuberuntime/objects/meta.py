"""Object metadata: accessors and predicates for fields of every Kubernetes object.

Objects are plain dictionaries (`JSONObject`), so that reading an object never loses a field. Functions read such
dictionaries and do not modify their arguments.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, NewType, TypeAlias, TypedDict

JSON: TypeAlias = Any
"""A JSON value from the API."""

JSONObject: TypeAlias = dict[str, Any]
"""A JSON object from the API. Treat it as immutable."""

UID = NewType("UID", str)
ResourceVersion = NewType("ResourceVersion", str)


_NONE: Final[Mapping[str, Any]] = MappingProxyType({})
"""The metadata of an object without metadata. For performance, accessors read metadata without a function call."""


class ObjectKey(NamedTuple):
    """The key of an object: its namespace (empty for cluster-scoped kinds) and its name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class OwnerReference(TypedDict, total=False):
    """`metadata.ownerReferences[]`."""

    apiVersion: str
    kind: str
    name: str
    uid: str
    controller: bool
    blockOwnerDeletion: bool


def metadata(obj: Mapping[str, Any]) -> JSONObject:
    """Return `metadata`, or an empty object if it is absent or null."""
    return obj.get("metadata") or {}


def spec(obj: Mapping[str, Any]) -> JSONObject:
    """Return `spec`, or an empty object if it is absent or null."""
    return obj.get("spec") or {}


def status(obj: Mapping[str, Any]) -> JSONObject:
    """Return `status`, or an empty object if it is absent or null."""
    return obj.get("status") or {}


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
    """Return whether the status reports the current spec: `status.observedGeneration` equals `metadata.generation`."""
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


def created(obj: Mapping[str, Any]) -> str:
    """Return the creation timestamp, or an empty string if the object was not created."""
    return str((obj.get("metadata") or _NONE).get("creationTimestamp") or "")


def by_age(obj: Mapping[str, Any]) -> tuple[str, str]:
    """Return a sort key: the oldest object is first, and objects of the same second are sorted by name."""
    return created(obj), name(obj)


def controller_of(obj: Mapping[str, Any]) -> OwnerReference | None:
    """Return the owner reference of the controller, or None if there is none."""
    references: list[OwnerReference] = (obj.get("metadata") or _NONE).get("ownerReferences") or []
    for reference in references:  # a loop: each object is asked often, and `next` costs twice as much
        if reference.get("controller"):
            return reference
    return None


def is_controlled(obj: Mapping[str, Any], owner: Mapping[str, Any]) -> bool:
    """Return whether `owner`, and not a different object with its name, controls `obj`."""
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
    """Return the controller of `obj` if it is neither `owner` nor a predecessor with its name."""
    controller = controller_of(obj)
    if controller is None or (controller["kind"], controller["name"]) == (owner["kind"], name(owner)):
        return None
    return controller


def ownership(obj: Mapping[str, Any]) -> str:
    """Describe the controller of `obj`, as the end of a sentence."""
    controller = controller_of(obj)
    return f"is controlled by {controller['kind']} {controller['name']}" if controller else "has no controller"


def controller_reference(owner: Mapping[str, Any]) -> OwnerReference:
    """Build a controller reference to `owner`, which blocks its foreground deletion."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name(owner),
        "uid": uid(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def find_condition(obj: Mapping[str, Any], condition_type: str) -> JSONObject | None:
    """Return the condition with the given type, or None if there is none."""
    conditions: list[JSONObject] = status(obj).get("conditions") or []
    return next((condition for condition in conditions if condition.get("type") == condition_type), None)


def with_condition(obj: Mapping[str, Any], condition: JSONObject, moment: str) -> list[JSONObject]:
    """Return the object's conditions with a new condition. Its time changes only with its status.

    >>> with_condition({}, {"type": "Ready", "status": "True"}, "2026-01-01T00:00:00Z")
    [{'type': 'Ready', 'status': 'True', 'lastTransitionTime': '2026-01-01T00:00:00Z'}]
    """
    previous = find_condition(obj, condition["type"]) or {}
    since = previous.get("lastTransitionTime") if previous.get("status") == condition["status"] else None
    others = [other for other in status(obj).get("conditions") or [] if other["type"] != condition["type"]]
    return [*others, condition | {"lastTransitionTime": since or moment}]


def is_condition_true(obj: Mapping[str, Any], condition_type: str) -> bool:
    """Return whether the condition of the given type is present and `True`."""
    condition = find_condition(obj, condition_type)
    return condition is not None and condition.get("status") == "True"
